// Training of GAN imputation.
#pragma once

#include <cstdint>

#include "train/spectral.h"
#include "train/trainer.h"

namespace assay {

struct GainOptions {
  Shape input;                // [C,H,W]
  double alpha = 100;         // > 0: weight of the generator's error on what is known
  double hint_rate = 0.01;    // (0,1]: probability that the discriminator is told of a pixel
  double maximum_rate = 0.5;  // (0,1]: U(0, maximum_rate) of an image's pixels are removed
  int64_t width = 64;         // channels of the first convolution
};

// GAIN (Yoon et al. 2018) with the nets and losses of Kachuee et al. 2020, as ROAD (appendix
// B) trains it. Works on images of range 0..1 minus the mean image of part "train". Of each
// image pixels are removed at random, each alone (all channels), with a probability
// of its own. The generator sees what is left, the mask and noise on what is removed; the discriminator sees
// the imputed image and the hint (1 or 0 for pixels that it is told are known or removed, else 1/2) and says
// of every pixel and channel whether it is known. A step is one of the discriminator, by mean binary
// cross-entropy, then one of the generator, by minus the mean log of what is said of removed pixels, plus
// alpha times its mean squared error on known ones (which is what steps' losses are: the sum). Evaluation:
// the mean squared error of imputed images over all pixels. `correct` counts pixels and channels of which the
// discriminator says rightly whether they are known.
class GainTrainer final : public Trainer {
 public:
  // Labels are let be. Throws invalid or unsupported.
  GainTrainer(const GainOptions& gain, const TrainerOptions& options, at::Device device, Precision precision);

  void set_data(const std::string& part, const at::Tensor& examples, const at::Tensor& labels) override;

  // "generator.net...", "discriminator.net..." and "mfv", the mean image [C,H,W] (not before part "train").
  NamedTensors parameters() const override;
  NamedTensors optimizer_state() const override;
  void set_state(const NamedTensors& parameters, const NamedTensors& optimizer) override;

 private:
  // Random numbers of a purpose, of images beginning at a place (in a step, or in a part).
  struct Draws {
    uint64_t rate, mask, noise, hint;  // keys
    uint64_t number;                   // of the step
    uint64_t place;
  };
  // Images with what was removed of them.
  struct Masked {
    at::Tensor x;        // [n,C,H,W], the mean image taken away
    at::Tensor removed;  // [n,1,H,W] bool
    at::Tensor known;    // 1 or 0: its contrary
  };

  Draws draws(const char* purpose, int64_t number, int64_t place) const;
  Masked masked(const at::Tensor& images, const Draws& draws) const;
  // What the generator makes of images, [n,C,H,W]; pass: which of its forwards in a step.
  at::Tensor generated(const Masked& m, const Draws& draws, uint64_t pass, bool training);
  // What the discriminator says of images imputed with it, [n,C,H,W].
  at::Tensor judged(const Masked& m, const at::Tensor& generated, const Draws& draws, uint64_t pass,
                    bool training);

  void step(const Loader& loader, int64_t begin, int64_t n, double rate, int64_t number, at::Tensor& loss,
            at::Tensor& correct) override;
  void judge(const Loader& loader, int64_t begin, int64_t n, at::Tensor& loss, at::Tensor& correct) override;
  int64_t predictions() const override { return input()[0] * input()[1] * input()[2]; }

  GainOptions gain_;
  SpectralGraph generator_, discriminator_;
  at::Tensor mean_;  // [C,H,W]
};

}  // namespace assay
