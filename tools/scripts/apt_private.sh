# Sourced: an apt-get with lists and sources of its own, so that the system's stay as they are.

# system_sources deb|deb-src: the system's own package sources as lines of that type.
system_sources() {
  apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' | sort -u |
    awk -v type="$1" -v key="$(archive_key)" '$4 == "Debian" || $4 == "Ubuntu" || $4 == "Raspbian" {print type, key, $1, $2, $3}'
}

# debian_sources SUITE: the Debian mirror of this system, at another release; nothing where it is not Debian.
debian_sources() {
  apt-get indextargets --format '$(REPO_URI) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' | sort -u |
    awk -v suite="$1" -v key="$(archive_key)" '$3 == "Debian" && $2 == "main" && $1 !~ /security/ {print "deb", key, $1, suite, "main"; exit}'
}

archive_key() {
  local file=/usr/share/keyrings/debian-archive-keyring.gpg
  if [ -f $file ] && grep -qi '^ID=debian' /etc/os-release; then echo "[signed-by=$file]"; else echo "[]"; fi
}

# apt_private DIR LINES: prepares DIR for apt_private_get with these sources. Fails where there are none.
apt_private() {
  [ -n "$2" ] || { echo "this system has no package sources of the kind needed" >&2; return 1; }
  apt_private_dir=$1
  mkdir -p "$1/lists/partial" "$1/archives/partial"
  printf '%s\n' "$2" | sed 's/ \[\] / /' >"$1/sources.list"
  apt_private_get update
}

apt_private_get() {
  apt-get -qq -o Dir::Etc::sourcelist="$apt_private_dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferencesparts=/dev/null -o Dir::State::lists="$apt_private_dir/lists" \
    -o Dir::Cache="$apt_private_dir" -o APT::Sandbox::User=root "$@" >&2
}
