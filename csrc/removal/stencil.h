// The stencil of noisy linear imputation on one level of some channels, in planes that
// vector units like: a row's even columns, then its odd ones, each half between zeros.
// So the eight neighbours of a run of even columns are runs too, and a Gauss-Seidel
// sweep (even columns, then odd ones, row by row) has no element that waits for its
// neighbour in the same run. Channels stand side by side in a half, a zero between
// them: rows of small images alone are shorter than vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

inline constexpr double kDirect = 1.0 / 6, kDiagonal = 1.0 / 12;

// Where the pixels of a plane are.
struct PlaneShape {
  int64_t height = 0, width = 0, lanes = 1;  // lanes: channels

  int64_t cells() const { return (width + 1) / 2; }  // columns of a half; the last odd one may be outside
  int64_t lane() const { return cells() + 1; }       // from a channel to the next
  int64_t span() const { return lanes * lane(); }    // of all channels' columns, zeros between them included
  int64_t half() const { return span() + 2; }
  int64_t pitch() const { return 2 * half(); }
  size_t size() const { return static_cast<size_t>((height + 2) * pitch()); }
  // Of the first even column of a row; rows -1 and height are zeros.
  int64_t row(int64_t r) const { return (r + 1) * pitch() + 1; }
  PlaneShape coarser() const { return {(height + 1) / 2, (width + 1) / 2, lanes}; }
  bool operator==(const PlaneShape&) const = default;
};

// One level for a mask: which of its cells are unknown, and the diagonal.
template <class T>
struct Level {
  PlaneShape shape;
  std::vector<T> gain;      // plane: 1/d where unknown, 0 elsewhere
  std::vector<T> diagonal;  // d: three rows of a pitch, of rows with 0, 1 and 2 neighbouring rows
  std::vector<T> inverse;   // 1/d likewise
  int64_t unknown = 0;      // of each channel

  const T* diagonal_of(int64_t r) const {
    return diagonal.data() + ((r > 0) + (r + 1 < shape.height)) * shape.pitch() + 1;
  }
};

// x' = one sweep from x = 0, rows downwards; x's zeros must be there, nothing else.
void sweep_from_zero(const Level<float>& level, const float* b, float* x);
void sweep_from_zero(const Level<double>& level, const double* b, double* x);
// One sweep downwards.
void sweep_down(const Level<float>& level, const float* b, float* x);
void sweep_down(const Level<double>& level, const double* b, double* x);
// Its mirror image, upwards; answers b.x of the result.
double sweep_up(const Level<float>& level, const float* b, float* x);
double sweep_up(const Level<double>& level, const double* b, double* x);
// The restricted residual P'(b - A x), as the right-hand side of the next level.
// scratch: a plane's room.
void restrict_residual(const Level<float>& level, const float* b, const float* x, float* scratch,
                       const PlaneShape& coarse, float* coarse_b);
void restrict_residual(const Level<double>& level, const double* b, const double* x, double* scratch,
                       const PlaneShape& coarse, double* coarse_b);
// x += P e on unknown cells.
void add_prolonged(const Level<float>& level, const PlaneShape& coarse, const float* e, float* x);
void add_prolonged(const Level<double>& level, const PlaneShape& coarse, const double* e, double* x);
// p = z + beta p, q = A p; answers p.q.
double direct(const Level<float>& level, const float* z, double beta, float* p, float* q);
double direct(const Level<double>& level, const double* z, double beta, double* p, double* q);

struct Step {
  double residual;  // squared norm
  double largest;   // |alpha p|
};
// x += alpha p, r -= alpha q.
Step advance(size_t size, double alpha, const float* p, const float* q, float* x, float* r);
Step advance(size_t size, double alpha, const double* p, const double* q, double* x, double* r);

// What is known of a channel.
template <class T>
struct Known {
  double sum = 0;
  T low, high;  // +-infinity where nothing is known
};
// values, removed: [height,width] of a channel, row-major.
Known<float> survey(const PlaneShape& shape, const float* values, const bool* removed);
Known<double> survey(const PlaneShape& shape, const double* values, const bool* removed);
// The channel's part of plane = values - shift where known, 0 elsewhere.
void load_known(const Level<float>& level, int64_t channel, const float* values, float shift, float* plane);
void load_known(const Level<double>& level, int64_t channel, const double* values, double shift,
                double* plane);
// values = the channel's part of plane + shift, kept within low..high, where removed.
void store_filled(const PlaneShape& shape, int64_t channel, const float* plane, const bool* removed,
                  float shift, float low, float high, float* values);
void store_filled(const PlaneShape& shape, int64_t channel, const double* plane, const bool* removed,
                  double shift, double low, double high, double* values);
// gain = removed ? inverse : 0, inverse a row of a pitch for each number of neighbouring
// rows, as Level::diagonal; answers how many are removed.
int64_t load_gain(const PlaneShape& shape, const bool* removed, const float* inverse, float* gain);
int64_t load_gain(const PlaneShape& shape, const bool* removed, const double* inverse, double* gain);
// Cells of 2x2 of which all within the image are removed.
void coarsen(const PlaneShape& shape, const bool* removed, bool* coarse);

// b = W k on unknown cells.
void gather_known(const Level<float>& level, const float* k, float* b);
void gather_known(const Level<double>& level, const double* k, double* b);
// The squared norm of each channel.
std::vector<double> squares(const PlaneShape& shape, const float* plane);
std::vector<double> squares(const PlaneShape& shape, const double* plane);
// r = W f - d f on unknown cells, summed in double; answers its squared norm.
double exact_residual(const Level<float>& level, const float* f, float* r);
double exact_residual(const Level<double>& level, const double* f, double* r);

}  // namespace assay
