#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include "removal/clusters.h"
#include "removal/harmonic.h"
#include "removal/stencil.h"

namespace assay {
namespace {

// The sums of weights within the image, or their inverses: rows of a pitch for 0, 1 and
// 2 neighbouring rows.
template <class T>
std::vector<T> diagonal_of(const PlaneShape& s, bool inverse) {
  std::vector<T> out(static_cast<size_t>(3 * s.pitch()), T(0));
  for (int64_t rows = 0; rows < 3; ++rows) {
    T* const to = out.data() + rows * s.pitch() + 1;
    for (int64_t k = 0; k < s.lanes * s.width; ++k) {
      const int64_t c = k % s.width;
      const int64_t columns = int64_t{c > 0} + int64_t{c + 1 < s.width};
      const double sum =
          kDirect * static_cast<double>(rows + columns) + kDiagonal * static_cast<double>(rows * columns);
      to[(c % 2) * s.half() + k / s.width * s.lane() + c / 2] = static_cast<T>(inverse ? 1 / sum : sum);
    }
  }
  return out;
}

// A level is worth its sweeps from so many of its cells on: below, holes are small.
constexpr double kWorthwhile = .1;

// Levels whose memory is used again.
template <class T>
struct LevelStore {
  std::vector<Level<T>> all;
  size_t count = 0;

  std::span<const Level<T>> levels() const { return {all.data(), count}; }
};

// The levels of a mask, of which at least one pixel is known and one is not.
template <class T>
void find_levels(const bool* removed, PlaneShape shape, LevelStore<T>& store) {
  store.count = 0;
  // vector<bool> has no data().
  std::unique_ptr<bool[]> mask, coarse;
  for (const bool* own = removed;;) {
    if (store.count == store.all.size()) store.all.emplace_back();
    Level<T>& level = store.all[store.count];
    if (!(level.shape == shape)) {
      level.shape = shape;
      level.gain.assign(shape.size(), T(0));
      level.diagonal = diagonal_of<T>(shape, false);
      level.inverse = diagonal_of<T>(shape, true);
    }
    level.unknown = load_gain(shape, own, level.inverse.data(), level.gain.data());
    const double share = static_cast<double>(level.unknown) / static_cast<double>(shape.height * shape.width);
    if (level.unknown == 0 || (store.count > 0 && share < kWorthwhile)) return;
    ++store.count;
    const PlaneShape next = shape.coarser();
    coarse = std::make_unique<bool[]>(static_cast<size_t>(next.height * next.width));
    coarsen(shape, own, coarse.get());
    mask.swap(coarse);
    own = mask.get();
    shape = next;
  }
}

// Planes for the solution of the channels of one image.
template <class T>
struct Workspace {
  std::vector<T> known, solution, residual, direction, product;
  std::vector<std::vector<T>> b, x;  // a level each; b[0] unused
  std::vector<T> scratch;
  PlaneShape shape;
  size_t levels = 0;

  // Zeros where planes have them. Those of images of one size are used again: what is
  // between the zeros is written before it is read.
  void fit(std::span<const Level<T>> all) {
    if (all[0].shape.size() != shape.size() || all[0].shape.width != shape.width) {
      *this = Workspace();
      shape = all[0].shape;
      for (auto* plane : {&known, &solution, &residual, &direction, &product, &scratch}) {
        plane->assign(shape.size(), T(0));
      }
    }
    for (; levels < all.size(); ++levels) {
      b.emplace_back(levels == 0 ? 0 : all[levels].shape.size(), T(0));
      x.emplace_back(all[levels].shape.size(), T(0));
    }
  }
};

// Sweeps, each way, on the level that has no coarser one, whose holes are small. Scattered
// pixels, which have one level alone, are as well off with more steps as with more sweeps.
constexpr int kLastSweeps = 2, kOnlySweeps = 1;

// x[level] = M^-1 b; answers b.x.
template <class T>
double cycle(std::span<const Level<T>> levels, size_t level, const T* b, Workspace<T>& work) {
  T* const x = work.x[level].data();
  sweep_from_zero(levels[level], b, x);
  if (level + 1 == levels.size()) {
    for (int k = 1; k < (level == 0 ? kOnlySweeps : kLastSweeps); ++k) {
      sweep_up(levels[level], b, x);
      sweep_down(levels[level], b, x);
    }
    return sweep_up(levels[level], b, x);
  }
  const PlaneShape& coarse = levels[level + 1].shape;
  restrict_residual(levels[level], b, x, work.scratch.data(), coarse, work.b[level + 1].data());
  cycle<T>(levels, level + 1, work.b[level + 1].data(), work);
  add_prolonged(levels[level], coarse, work.x[level + 1].data(), x);
  return sweep_up(levels[level], b, x);
}

struct Solved {
  int iterations;
  bool converged;
};

// A x = residual by preconditioned conjugate gradients, x from 0 in work.solution until
// |residual| <= target.
template <class T>
Solved conjugate_gradients(std::span<const Level<T>> levels, Workspace<T>& work, double target,
                           const HarmonicOptions& options, int allowed) {
  std::fill(work.solution.begin(), work.solution.end(), T(0));
  double before = 0;
  for (int iteration = 1; iteration <= allowed; ++iteration) {
    const double now = cycle<T>(levels, 0, work.residual.data(), work);
    if (!(now > 0)) return {iteration - 1, now == 0};  // nothing left to do, or no number
    const double beta = iteration == 1 ? 0 : now / before;
    if (iteration == 1) std::fill(work.direction.begin(), work.direction.end(), T(0));
    before = now;
    const double curvature =
        direct(levels[0], work.x[0].data(), beta, work.direction.data(), work.product.data());
    if (!(curvature > 0)) return {iteration, false};
    const Step step = advance(work.solution.size(), now / curvature, work.direction.data(),
                              work.product.data(), work.solution.data(), work.residual.data());
    if (std::sqrt(step.residual) <= target && step.largest <= options.step) return {iteration, true};
  }
  return {allowed, false};
}

// How a channel's numbers become those that are solved for, and back.
template <class T>
struct Scale {
  T shift, low, high;
  bool solved;  // false: all removed pixels become shift
};

// Fills channels [lanes,height,width] of one image, which stand side by side.
template <class T>
Solved fill(std::span<const Level<T>> levels, const bool* removed, T* values, const HarmonicOptions& options,
            Workspace<T>& work) {
  const PlaneShape& s = levels[0].shape;
  const int64_t pixels = s.height * s.width;
  std::vector<Scale<T>> scales;
  double range = 0;
  for (int64_t c = 0; c < s.lanes; ++c) {
    const Known<T> known = survey(s, values + c * pixels, removed);
    // What is no number is in every mean. A mean does not care for a constant: without it
    // digits are saved.
    const bool finite = std::isfinite(known.sum), flat = known.low == known.high;
    const T mean = static_cast<T>(known.sum / static_cast<double>(pixels - levels[0].unknown));
    scales.push_back({!finite ? std::numeric_limits<T>::quiet_NaN()
                      : flat  ? known.low
                              : mean,
                      known.low, known.high, finite && !flat});
    if (finite) range = std::max(range, static_cast<double>(known.high - known.low));
  }
  const auto load = [&](int64_t c) {
    load_known(levels[0], c, values + c * pixels, scales[static_cast<size_t>(c)].shift, work.known.data());
  };
  const auto leave_out = [&](int64_t c) {
    for (int64_t r = 0; r < s.height; ++r) {
      for (const int64_t half : {int64_t{0}, s.half()})
        std::fill_n(work.known.data() + s.row(r) + half + c * s.lane(), s.cells(), T(0));
    }
  };
  for (int64_t c = 0; c < s.lanes; ++c) scales[static_cast<size_t>(c)].solved ? load(c) : leave_out(c);
  gather_known(levels[0], work.known.data(), work.residual.data());
  // The smallest of the channels that have something to solve: what is small enough for it
  // is so for all.
  double norm = 0;
  for (const double square : squares(s, work.residual.data())) {
    if (square > 0) norm = norm > 0 ? std::min(norm, std::sqrt(square)) : std::sqrt(square);
  }
  const double target = options.residual * norm;
  Solved solved{0, true};
  if (norm > 0) {
    solved = conjugate_gradients<T>(levels, work, target, options, options.max_iterations);
  } else {
    std::fill(work.solution.begin(), work.solution.end(), T(0));
  }
  // What the recurrence believes of the residual is true up to rounding in every term: where
  // that is of the target's size, the residual is computed again, in double, and solved for.
  const double rounding = .25 * static_cast<double>(std::numeric_limits<T>::epsilon()) *
                          std::sqrt(static_cast<double>(levels[0].unknown)) * range;
  constexpr int kRounds = 3;
  const auto add = [&] {
    for (size_t i = 0; i < work.known.size(); ++i) work.known[i] += work.solution[i];
  };
  add();
  for (int round = 0; round < kRounds && rounding > .2 * target && solved.converged; ++round) {
    const double left = std::sqrt(exact_residual(levels[0], work.known.data(), work.residual.data()));
    if (left <= target) break;
    const Solved more = conjugate_gradients<T>(levels, work, std::max(target, 1e-3 * left) / 2, options,
                                               options.max_iterations - solved.iterations);
    solved = {solved.iterations + more.iterations, more.converged};
    add();
  }
  for (int64_t c = 0; c < s.lanes; ++c) {
    const Scale<T>& scale = scales[static_cast<size_t>(c)];
    T* const own = values + c * pixels;
    if (scale.solved) {
      store_filled(s, c, work.known.data(), removed, scale.shift, scale.low, scale.high, own);
      continue;
    }
    for (int64_t i = 0; i < pixels; ++i) own[i] = removed[i] ? scale.shift : own[i];
  }
  return solved;
}

// Channels stand side by side where planes of all of them fit into a core's own cache.
constexpr int64_t kPlaneBytes = 64 << 10;

// What HarmonicScratch keeps for a type: levels of each image of a call, planes of each thread.
template <class T>
struct Stores {
  std::vector<LevelStore<T>> images;
  std::vector<Workspace<T>> threads;
  std::vector<Clusters> clusters;  // a thread each
};

template <class T>
HarmonicReport fill_all(at::Tensor& values, const at::Tensor& removed, const HarmonicOptions& options,
                        Stores<T>& stores) {
  const int64_t n = values.size(0), channels = values.size(1), h = values.size(2), w = values.size(3);
  const bool together = channels * h * w * static_cast<int64_t>(sizeof(T)) <= kPlaneBytes;
  const PlaneShape shape{h, w, together ? channels : 1};
  const int64_t groups = channels / shape.lanes;
  T* const data = values.data_ptr<T>();
  const bool* const gone = removed.const_data_ptr<bool>();
  if (static_cast<int64_t>(stores.images.size()) < n) stores.images.resize(static_cast<size_t>(n));
  const size_t threads = static_cast<size_t>(at::get_num_threads());
  if (stores.threads.size() < threads) {
    stores.threads.resize(threads);
    stores.clusters.resize(threads);
  }
  std::vector<int32_t> directly(static_cast<size_t>(n), 0);
  at::parallel_for(0, n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool* const mask = gone + i * h * w;
      LevelStore<T>& own = stores.images[static_cast<size_t>(i)];
      const auto has = [&](bool value) { return std::find(mask, mask + h * w, value) != mask + h * w; };
      own.count = 0;
      if (!has(false) || !has(true)) continue;  // nothing to go by, or to do
      Clusters& holes = stores.clusters[static_cast<size_t>(at::get_thread_num())];
      if (holes.find(mask, h, w)) {
        holes.fill(mask, data + i * channels * h * w, channels);
        directly[static_cast<size_t>(i)] = 1;
      } else {
        find_levels<T>(mask, shape, own);
      }
    }
  });
  std::vector<Solved> solved(static_cast<size_t>(n * groups), {0, true});
  at::parallel_for(0, n * groups, 1, [&](int64_t begin, int64_t end) {
    Workspace<T>& work = stores.threads[static_cast<size_t>(at::get_thread_num())];
    for (int64_t k = begin; k < end; ++k) {
      const std::span<const Level<T>> own = stores.images[static_cast<size_t>(k / groups)].levels();
      if (own.empty()) continue;
      work.fit(own);
      solved[static_cast<size_t>(k)] =
          fill<T>(own, gone + k / groups * h * w, data + k * shape.lanes * h * w, options, work);
    }
  });
  HarmonicReport report;
  for (int64_t i = 0; i < n; ++i) {
    int32_t most = directly[static_cast<size_t>(i)];
    for (int64_t g = 0; g < groups; ++g) {
      const Solved& one = solved[static_cast<size_t>(i * groups + g)];
      most = std::max(most, one.iterations);
      report.converged = report.converged && one.converged;
    }
    report.iterations.push_back(most);
  }
  return report;
}

}  // namespace

struct HarmonicScratch::Planes {
  Stores<float> single;
  Stores<double> wide;
};

HarmonicScratch::HarmonicScratch() : planes(std::make_unique<Planes>()) {}
HarmonicScratch::~HarmonicScratch() = default;

HarmonicReport fill_harmonic_planes(at::Tensor& values, const at::Tensor& removed,
                                    const HarmonicOptions& options, HarmonicScratch& scratch) {
  return values.scalar_type() == at::kDouble
             ? fill_all<double>(values, removed, options, scratch.planes->wide)
             : fill_all<float>(values, removed, options, scratch.planes->single);
}

}  // namespace assay
