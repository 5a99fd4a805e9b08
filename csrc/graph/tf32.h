// TF32 for the time of one call.
#pragma once

namespace assay {

// libtorch keeps the choice for the whole process: calls for several GPUs share
// a turn where they agree, else wait for one.
class TF32Guard {
 public:
  explicit TF32Guard(bool on);
  ~TF32Guard();
  TF32Guard(const TF32Guard&) = delete;
  TF32Guard& operator=(const TF32Guard&) = delete;
};

}  // namespace assay
