#include "graph/tf32.h"

#include <ATen/ATen.h>

#include <condition_variable>
#include <mutex>

namespace assay {
namespace {

struct Turn {
  std::mutex mutex;
  std::condition_variable changed;
  int users = 0;
  bool on = false;
  bool convolutions = false, products = false;  // as they were before

  static Turn& get() {
    static Turn turn;
    return turn;
  }
};

void set(bool convolutions, bool products) {
  at::globalContext().setAllowTF32CuDNN(convolutions);
  at::globalContext().setAllowTF32CuBLAS(products);
}

}  // namespace

TF32Guard::TF32Guard(bool on) {
  Turn& turn = Turn::get();
  std::unique_lock lock(turn.mutex);
  turn.changed.wait(lock, [&] { return turn.users == 0 || turn.on == on; });
  if (turn.users++ > 0) return;
  turn.on = on;
  turn.convolutions = at::globalContext().allowTF32CuDNN();
  turn.products = at::globalContext().allowTF32CuBLAS();
  set(on, on);
}

TF32Guard::~TF32Guard() {
  Turn& turn = Turn::get();
  {
    const std::lock_guard lock(turn.mutex);
    if (--turn.users > 0) return;
    set(turn.convolutions, turn.products);
  }
  turn.changed.notify_all();
}

}  // namespace assay
