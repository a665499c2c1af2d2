#include "tools/developer/error_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <fstream>

#include "tools/failure.h"

namespace mote::tool {
namespace {

constexpr double kTop = 0.0, kBottom = -8.0;  // of the scale, in powers of ten
constexpr int kBar = 18, kLeft = 60, kHigh = 240, kHead = 40, kFoot = 130;

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char text[512];
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(text, sizeof text, pattern, values);
  va_end(values);
  return text;
}

double height_of(double power) {
  return (std::clamp(power, kBottom, kTop) - kBottom) / (kTop - kBottom) * kHigh;
}

}  // namespace

void write_error_plot(const std::string& path, const std::vector<LayerError>& layers) {
  const int width = kLeft + static_cast<int>(layers.size()) * kBar + 20, base = kHead + kHigh;
  std::string svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
      "<text x=\"%d\" y=\"20\">log10 of the relative L2 error</text>\n",
      width, base + kFoot, kLeft);
  for (int power = static_cast<int>(kBottom); power <= static_cast<int>(kTop); ++power) {
    const double y = base - height_of(power);
    svg += format(
        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>"
        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n",
        kLeft, width - 20, y, y, kLeft - 6, y + 4, power);
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool broken = std::isnan(layers[i].log10_relative_l2);
    const double high = broken ? kHigh : height_of(layers[i].log10_relative_l2);
    const int x = kLeft + static_cast<int>(i) * kBar;
    svg += format(
        "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"%s\"/>"
        "<text transform=\"translate(%d,%d) rotate(-60)\" text-anchor=\"end\">%s</text>\n",
        x + 2, base - high, kBar - 4, high, broken ? "#c33" : "#47a", x + kBar / 2 + 3, base + 12,
        layers[i].name.c_str());
  }
  svg += "</svg>\n";
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << svg;
  file.close();
  if (!file) throw Failure(path + ": cannot write");
}

}  // namespace mote::tool
