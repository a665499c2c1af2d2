// safetensors files: a JSON header behind its 8-byte length, then the tensors' bytes, one after the
// other.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace mote::tool {

struct SafetensorsEntry {
  std::string dtype;  // "F32", "BF16", "I64", ...
  std::vector<uint64_t> shape;
  uint64_t offset = 0;  // of its first byte in the file
  uint64_t bytes = 0;

  uint64_t values() const;
  std::string describe() const;  // "F32 [300, 64]"
};

// Bytes of one value; 0 for a type that is not known.
uint32_t safetensors_type_bytes(const std::string& dtype);

// Checks the whole header when it opens: every type, shape and offset, no gap, no overlap, nothing
// behind the end. Throws Failure that names the file and the tensor.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::string& path);

  const std::string& path() const { return path_; }
  const std::map<std::string, SafetensorsEntry>& entries() const { return entries_; }
  const SafetensorsEntry* find(const std::string& name) const;
  const SafetensorsEntry& at(const std::string& name) const;

  // bytes of a tensor from its byte `first` on.
  void read(const SafetensorsEntry& entry, uint64_t first, uint64_t bytes, void* out);
  // All values of a tensor of any float or integer type.
  std::vector<float> read_floats(const std::string& name);
  std::vector<int64_t> read_integers(const std::string& name);

 private:
  void parse(const std::string& header, uint64_t data_start, uint64_t file_bytes);
  void check_coverage(uint64_t data_start, uint64_t file_bytes) const;

  std::string path_;
  std::ifstream file_;
  std::map<std::string, SafetensorsEntry> entries_;
};

// Writes a file whose tensors are declared first and filled in any order, so that nothing has to be
// held in memory. It appears under its name when finish() has succeeded, and not at all otherwise.
class SafetensorsWriter {
 public:
  explicit SafetensorsWriter(std::string path);
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  ~SafetensorsWriter();

  void declare(const std::string& name, const std::string& dtype, std::vector<uint64_t> shape);
  // After the last declare: creates the file.
  void begin(const std::map<std::string, std::string>& metadata = {});
  // bytes of a tensor from its byte `first` on.
  void write(const std::string& name, uint64_t first, const void* data, uint64_t bytes);
  void finish();

 private:
  std::string path_, temporary_;
  std::ofstream file_;
  std::map<std::string, SafetensorsEntry> entries_;
  std::vector<std::string> order_;
};

// Values of one of the float types as f32. Integers are taken too.
void values_to_f32(const std::string& dtype, const uint8_t* data, size_t count, float* out);

}  // namespace mote::tool
