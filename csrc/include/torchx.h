/* torchx: the whole boundary between assay's Go side and libtorch.
 *
 * Rules, relied on everywhere:
 * - Every call that can fail returns a tx_status*: NULL is success. A status is
 *   the caller's to free with tx_status_free. There is no "last error".
 * - No C++ exception leaves the library; no call ends the process.
 * - Out parameters are written on success only.
 * - Handles are opaque and have one free function each; freeing NULL is fine.
 *   A handle must not be used by two threads at once unless it says so.
 * - Strings are UTF-8. Strings returned through char** are the caller's to free
 *   with tx_string_free; `const char*` results live as long as their handle.
 * - One call does one batch of work: calls are coarse, data is POD.
 */
#ifndef ASSAY_TORCHX_H
#define ASSAY_TORCHX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every incompatible change of this header. */
#define TX_ABI 1

/* ---- Status ------------------------------------------------------------ */

typedef struct tx_status tx_status;
enum {
  TX_INVALID = 1,       /* the caller's argument or input data is wrong */
  TX_NOT_FOUND = 2,     /* no such net, layer, device, option */
  TX_UNSUPPORTED = 3,   /* understood, but not possible for this net or build */
  TX_OUT_OF_MEMORY = 4, /* on the host or on the device: a smaller batch may do */
  TX_INTERNAL = 5       /* a defect of assay or libtorch */
};
int32_t tx_status_code(const tx_status* status);
const char* tx_status_operation(const tx_status* status); /* "net-forward" */
const char* tx_status_message(const tx_status* status);
void tx_status_free(tx_status* status);

void tx_string_free(char* text);

/* ---- Library ----------------------------------------------------------- */

/* TX_ABI of the library that is loaded; compare with the header's. */
uint32_t tx_abi(void);

/* To be called once before anything else, from any thread: compares the
 * libtorch that was loaded with the one this library was built for, quietens
 * libtorch's warnings, loads the CUDA half of libtorch where it is there, and
 * tells malloc to keep what is freed (tx_device_trim gives it back). */
tx_status* tx_start(void);

/* JSON object: torch (version), torchBuilt, cpu (capability), threads,
 * mkldnn, mkl, openmp (booleans), cuda {built, devices: [{name, memory, ...}]},
 * torchLibraries (paths that are mapped). */
tx_status* tx_runtime(char** json);

/* Intra-op threads of the calling OS thread (n >= 1). */
tx_status* tx_set_threads(int32_t n);

/* JSON object {nets: [...], methods: [...], imputers: [...]}: each entry has
 * id, summary, parameters [{name, type, default, minimum, maximum, summary}],
 * needs, paper; nets also have preset, input, classes. */
tx_status* tx_catalogue(char** json);

/* ---- Devices ----------------------------------------------------------- */

enum { TX_CPU = 0, TX_CUDA = 1 };
typedef struct {
  int32_t type;  /* TX_CPU or TX_CUDA */
  int32_t index; /* 0 for the CPU */
} tx_device;

/* "cpu" or "cuda:N" ("cuda" is "cuda:0"); not-found where it is not there. */
tx_status* tx_device_open(const char* name, tx_device* device);
/* Bytes that are free (CPU: MemAvailable, within the cgroup) and there in all. */
tx_status* tx_device_memory(tx_device device, int64_t* free_bytes, int64_t* total_bytes);
/* Waits for all queued work. */
tx_status* tx_device_synchronize(tx_device device);
/* Gives cached memory back to the system (malloc_trim, CUDA cache). */
tx_status* tx_device_trim(tx_device device);

/* ---- Tensors ----------------------------------------------------------- */

/* An at::Tensor*: the pointer that a gotorch.Tensor holds. */
typedef void* tx_tensor;
enum {
  TX_F32 = 0,
  TX_F64 = 1,
  TX_F16 = 2,
  TX_BF16 = 3,
  TX_U8 = 4,
  TX_I8 = 5,
  TX_I16 = 6,
  TX_I32 = 7,
  TX_I64 = 8,
  TX_BOOL = 9
};
#define TX_MAX_DIMENSIONS 8

/* Copies size bytes (contiguous, row-major, host byte order) into a new CPU tensor. */
tx_status* tx_tensor_new(int32_t dtype, const int64_t* shape, int32_t dimensions, const void* bytes,
                         size_t size, tx_tensor* tensor);
tx_status* tx_tensor_describe(tx_tensor tensor, int32_t* dtype, int32_t* dimensions,
                              int64_t shape[TX_MAX_DIMENSIONS], tx_device* device);
/* Copies the tensor's elements, contiguous, to host memory of exactly that size. */
tx_status* tx_tensor_read(tx_tensor tensor, void* bytes, size_t size);
/* Rows [begin,end) of the first dimension, sharing memory; squeeze != 0 drops
 * the first dimension of a single row. */
tx_status* tx_tensor_rows(tx_tensor tensor, int64_t begin, int64_t end, int32_t squeeze, tx_tensor* rows);
/* A copy on another device. */
tx_status* tx_tensor_to(tx_tensor tensor, tx_device device, tx_tensor* copy);
void tx_tensor_free(tx_tensor tensor);

/* ---- Images ------------------------------------------------------------ */

enum { TX_RESIZE_NONE = 0, TX_RESIZE_SHORTER = 1, TX_RESIZE_SQUASH = 2 };
enum { TX_BILINEAR = 0, TX_BICUBIC = 1 };
typedef struct {
  int32_t resize;        /* TX_RESIZE_* */
  int32_t resize_height; /* SHORTER: the shorter side; SQUASH: height */
  int32_t resize_width;  /* SQUASH: width; else ignored */
  int32_t interpolation; /* TX_BILINEAR, TX_BICUBIC: Pillow's antialiased filters, bit-equal */
  int32_t crop_height;   /* centre crop as torchvision's; 0: none */
  int32_t crop_width;
  int32_t channels; /* 3: RGB (grey is spread), 1: grey (Pillow's L) */
  float mean[3];    /* of the [0,1] image, per channel */
  float std[3];
} tx_preset;

/* Decodes count encoded images (JPEG, PNG; recognised by content) on up to
 * `threads` threads and preprocesses them.
 * values (may be NULL): new f32 CPU tensor [count,C,H,W], normalised.
 * pixels (may be NULL): new u8 CPU tensor [count,H,W,C], the same before
 * normalisation. errors: JSON array of count entries, null or a message; a
 * failed image's row is zero. All images must come out with one size (a preset
 * without crop or squash on images of several sizes is invalid). */
tx_status* tx_images_decode(int64_t count, const void* const* bytes, const size_t* sizes,
                            const tx_preset* preset, int32_t threads, tx_tensor* values, tx_tensor* pixels,
                            char** errors);

/* ---- Nets -------------------------------------------------------------- */

typedef struct tx_net tx_net;
enum { TX_PRECISION_F32 = 0, TX_PRECISION_TF32 = 1, TX_PRECISION_BF16 = 2, TX_PRECISION_F64 = 3 };

/* spec: JSON {"net": id from the catalogue, "classes": n (0 or absent: the
 * net's own), "features": n (nets on tables)}. Parameters are unset until
 * tx_net_load. Or {"graph": a net file's JSON, as an object or as text}
 * (csrc/graph/json.h: own models): the net then is called what the file says,
 * its preset is the file's where that is a name, else "". */
tx_status* tx_net_new(const char* spec, tx_net** net);
/* A net from a file that torch.jit.save wrote, of a module that takes
 * [N,...input] and returns [N,classes]. spec: JSON {"name", "input": [C,H,W] or
 * [F] (default [3,224,224]), "preset": id}. The net comes loaded: its weights are
 * in the file. Where every operator has a counterpart in the network description
 * it is read into one; else it runs as a black box, for which describe says
 * {"blackBox": true, "reason": why} and no layers, and the independence of rows
 * is the module's own affair. Such files hold programs: trust them as programs. */
tx_status* tx_net_from_torchscript(const void* bytes, size_t size, const char* spec, tx_net** net);
/* JSON: {net, preset, input: [C,H,W] or [F], classes, outputs, parameterCount,
 * parameters: [{name, shape, buffer, optional}], layers: [{name, op, outputs}],
 * defaultLayer, blackBox, reason}. */
tx_status* tx_net_describe(const tx_net* net, char** json);
/* Takes all parameters at once (names as in describe; f16/bf16/f64 are
 * converted to f32 unless precision is F64). Every non-optional name must be
 * there, no other may be, shapes must be equal. The tensors are copied. */
tx_status* tx_net_load(tx_net* net, int64_t count, const char* const* names, const tx_tensor* tensors);
/* Moves to a device and makes ready for inference at a precision (BN folded,
 * weights reordered). May be called again. */
tx_status* tx_net_prepare(tx_net* net, tx_device device, int32_t precision);
/* x: [N,C,H,W] or [N,F] on any device. logits: new CPU tensor [N,classes], f32
 * (f64 at that precision). Runs `batch` rows at a time, the last one padded,
 * so that every convolution sees one shape (batch <= 0: all rows at once). */
tx_status* tx_net_forward(tx_net* net, tx_tensor x, int64_t batch, tx_tensor* logits);
void tx_net_free(tx_net* net);

/* ---- Masked forward ---------------------------------------------------- */

/* Images and their references on the net's device, in a fixed number of slots. */
typedef struct tx_scene tx_scene;

/* feature_map: for every pixel (H*W, row-major) or column (F) the feature
 * (patch) it belongs to, 0..features-1. channels 0: tables. */
tx_status* tx_scene_new(tx_device device, int32_t slots, int32_t channels, int32_t height, int32_t width,
                        int32_t features, const int32_t* feature_map, tx_scene** scene);
/* image, reference: [C,H,W] or [F], f32 or f64, any device; copied. */
tx_status* tx_scene_put(tx_scene* scene, int32_t slot, tx_tensor image, tx_tensor reference);
/* A generator that imputes, trained by tx_trainer_new_imputer: what imputer "gain" is made of. */
typedef struct tx_generator tx_generator;
/* Takes the generator and the mean image out of the parameters of such a training (names
 * "generator.net...", "mfv"; others, as those of its discriminator, are let be). device and
 * precision: those of the nets that it imputes for (BF16: it runs in f32). */
tx_status* tx_generator_new(int64_t count, const char* const* names, const tx_tensor* tensors,
                            tx_device device, int32_t precision, tx_generator** generator);
void tx_generator_free(tx_generator* generator);

/* In place of a reference an imputer of this image, for those that depend on what else is
 * deleted (a solve a state). spec, generator, mean, std, key and dataset_mean as in tx_remove. */
tx_status* tx_scene_put_imputed(tx_scene* scene, int32_t slot, tx_tensor image, const char* spec,
                                const tx_generator* generator, const float* mean, const float* std,
                                uint64_t key, const double* dataset_mean);
/* Scores n states. State r: image slot[r], features whose bit is set in
 * sets[r*words .. r*words+words) (words = (features+63)/64, bit f of the set =
 * bit f%64 of word f/64) replaced by the reference; tracked class target[r].
 * logit[r], probability[r]: that class's output and softmax (in double from
 * the net's outputs; NaN stays NaN). Runs `batch` rows at a time, the last padded. */
tx_status* tx_masked_forward(tx_net* net, const tx_scene* scene, int64_t n, const int32_t* slot,
                             const uint64_t* sets, const int32_t* target, int64_t batch, double* logit,
                             double* probability);
void tx_scene_free(tx_scene* scene);

/* References for N images, computed once from the originals. spec: JSON
 * {"id": from the catalogue's imputers, parameters...}; mean/std (one entry a
 * channel) of the preset, for references that are defined in pixel space; keys:
 * N random keys (internal/rng), NULL if the reference draws nothing; features and
 * feature_map as in tx_scene_new, for patch-mean (else 0, NULL); other: the image
 * to take for "image" ([C,H,W] or [N,C,H,W], normalised), else NULL; dataset_mean: an
 * entry a channel or column, normalised, for "dataset-mean", else NULL.
 * images: [N,C,H,W] or [N,F]; references: new tensor of the same shape, type and
 * device. */
tx_status* tx_reference(const char* spec, tx_tensor images, const float* mean, const float* std,
                        const uint64_t* keys, int32_t features, const int32_t* feature_map, tx_tensor other,
                        const double* dataset_mean, tx_tensor* references);

/* ---- Removal by rank --------------------------------------------------- */

/* An image without `removed` of its features (pixels or columns): the most relevant,
 * or with least != 0 the least relevant. */
typedef struct {
  int32_t image;
  int32_t removed; /* 0..H*W or F */
  int32_t least;
} tx_removal_row;

typedef struct {
  /* What features become: JSON {"id": from the catalogue's imputers, parameters...}. */
  const char* imputer;
  const tx_generator* generator; /* for "gain"; else NULL. It may be freed before what was made with it. */
  /* [N,H*W] or [N,F]: the largest value is the most relevant; NULL: all are equal. */
  const float* maps;
  const char* ties;           /* "random", "index" or "noise": which of equal values is first */
  const uint64_t* tie_keys;   /* N random keys; may be NULL with "index" */
  const uint64_t* noise_keys; /* N random keys; NULL if the imputer draws nothing */
  /* Of the preset, an entry a channel, for imputers that are defined in pixel space; NULL for tables. */
  const float* mean;
  const float* std;
  /* The mean of the data, an entry a channel or column, normalised; NULL: not known, which
   * is an error where "dataset-mean" is asked for, or "noisy-linear" with all of an image removed. */
  const double* dataset_mean;
  int64_t targets_each;   /* classes an image to look at; may be 0 */
  const int32_t* targets; /* [N,targets_each] */
  int64_t rows;           /* >= 1 */
  const tx_removal_row* row;
  int64_t batch; /* rows that run at a time, the last ones padded; >= 1 */
} tx_removal;

/* What is written, a row each; pointers that may be NULL say so. */
typedef struct {
  int32_t* classes;      /* the most probable (ties: the smaller) */
  double* probabilities; /* [rows,targets_each] softmax of the image's targets; NaN stays NaN */
  double* variations;    /* NULL or: total variation of the mask (mean |difference| of vertical
                            neighbours plus that of horizontal ones; tables: 0) */
  int32_t* iterations;   /* NULL or: of the imputer's solver, 0 where it has none */
  double* seconds;       /* NULL or two numbers: ranking and imputing, and running the net */
} tx_removal_result;

/* Removes features of images ([N,C,H,W] or [N,F], any floating type and device) by rank,
 * imputes them and runs what is left. inputs: NULL, or a new CPU tensor of what the net saw,
 * [rows,C,H,W] or [rows,F]. Given the batch, a row depends neither on its place nor on others. */
tx_status* tx_remove(tx_net* net, tx_tensor images, const tx_removal* removal,
                     const tx_removal_result* result, tx_tensor* inputs);

/* ---- Attribution ------------------------------------------------------- */

typedef struct {
  int64_t batch; /* rows that run at a time, the last ones padded; >= 1 */
  /* Of the preset, an entry a channel; NULL where no reference is made of them. */
  const float* mean;
  const float* std;
  /* For methods that delete features: the feature of each of H*W pixels (or F
   * columns), 0..features-1; NULL, 0: the method's own grid of patches. */
  const int32_t* feature_map;
  int32_t features;
} tx_attribute_options;

/* Explains the output of class targets[n] for each of N images ([N,C,H,W] or
 * [N,F], any floating type and device). method: JSON {"id": from the catalogue's
 * methods, parameters..., "base": a method, for those that are made of another}.
 * keys: N random keys (internal/rng). maps: new CPU tensor [N,C,H,W], [N,1,H,W]
 * or [N,F], f32 (f64 at that precision), signed, no channel reduced. report: JSON
 * {forwards, backwards (rows), deltas (N completeness gaps, or empty), warnings}.
 * Given the batch, a row's map depends neither on its place nor on the others. */
tx_status* tx_attribute(tx_net* net, const char* method, tx_tensor images, const int32_t* targets,
                        const uint64_t* keys, const tx_attribute_options* options, tx_tensor* maps,
                        char** report);

/* ---- Scores of maps ---------------------------------------------------- */

/* Row i of the new tensor is images[row[i]] ([N,C,H,W] or [N,F], f32 or f64, on the
 * CPU) plus radius (2 u - 1), u = U[0,1) number (element, sample[i]) of the stream
 * key[i] (internal/rng): independent for every element. radius 0: copies. */
tx_status* tx_images_noisy(tx_tensor images, int64_t n, const int32_t* row, const uint64_t* key,
                           const uint64_t* sample, double radius, tx_tensor* rows);
/* Scores n images, multiplied by masks: row i is images[row[i]] ([N,C,H,W] or [N,F])
 * times masks[i*H*W...], the same for every channel (or masks[i*F...]). Outputs as
 * tx_masked_forward's; runs `batch` rows at a time, the last padded. */
tx_status* tx_scaled_forward(tx_net* net, tx_tensor images, int64_t n, const int32_t* row, const float* masks,
                             const int32_t* target, int64_t batch, double* logit, double* probability);
/* JSON array of {name, op}: the ops that have parameters, in the graph's order;
 * empty for black boxes. */
tx_status* tx_net_parametrised(const tx_net* net, char** json);
/* A copy of a prepared net, prepared alike, in which the parameters of the named
 * ops are drawn anew, as training begins (tx_trainer_new), by (seed, name of the
 * parameter): layer after layer or all at once, the net is the same. */
tx_status* tx_net_randomised(const tx_net* net, int64_t count, const char* const* layers, uint64_t seed,
                             tx_net** copy);

/* ---- Training ---------------------------------------------------------- */

/* A net in training: parameters, optimiser state and data, on a device. */
typedef struct tx_trainer tx_trainer;

/* Trains a copy of the net's graph (the net needs no parameters, and is not
 * changed). spec: JSON object, all of it optional:
 * seed: integer >= 0, of everything random;
 * optimizer: {id: "sgd" | "adam", weightDecay (L2, 0), momentum, nesterov (sgd:
 *   0, false), beta1, beta2, epsilon (adam: 0.9, 0.999, 1e-8)}: torch.optim's rules;
 * labelSmoothing: in [0,1), as PyTorch's CrossEntropyLoss;
 * augment: {pad: pixels of zeros around an image, from which a window of its
 *   size is cut at random; flip: mirrors half of the images}, steps only;
 * scale, mean, std: (raw / scale - mean) / std, lists with an entry a channel
 *   (a column), one entry, or none.
 * precision: F32, TF32 (on GPUs), F64, or BF16: products in bf16, parameters f32.
 * Initial parameters are drawn as PyTorch's layers draw them: convolutions and
 * linear layers uniform in +-1/sqrt(fan_in), norms 1 and 0, other parameters
 * normal with standard deviation 0.02. */
tx_status* tx_trainer_new(const tx_net* net, const char* spec, tx_device device, int32_t precision,
                          tx_trainer** trainer);
/* Trains an imputer. spec: JSON object: imputer: "gain" (Yoon et al. 2018; generator and
 * discriminator of Kachuee et al. 2020: residual, spectrally normalised); input: [C,H,W];
 * seed, optimizer, augment and scale as above (no mean, no std: it works on raw / scale minus
 * the mean of part "train", which images should have in 0..1); and
 * alpha (100): weight of the generator's error on what is known;
 * hintRate (0.01): probability that the discriminator is told of a pixel;
 * maximumRate (0.5): of an image U(0, maximumRate) of the pixels are removed;
 * width (64): channels of the first layer.
 * Steps make one of the discriminator and one of the generator, at the same rate; their loss
 * is the generator's. Labels are let be. Evaluation: loss is the mean squared error of
 * imputed images, over all of their pixels. Both judge pixels: examples counts those (and
 * channels), correct what the discriminator took for what it is. */
tx_status* tx_trainer_new_imputer(const char* spec, tx_device device, int32_t precision,
                                  tx_trainer** trainer);
/* Puts examples on the device in place of a part ("train" is what steps see).
 * examples: u8 or f32 [N,C,H,W] or [N,F], raw; labels: integers [N], 0..classes-1.
 * On the CPU the tensors' memory is shared: it must not be written to afterwards. */
tx_status* tx_trainer_data(tx_trainer* trainer, const char* part, tx_tensor examples, tx_tensor labels);
/* Takes `steps` steps: step i on examples indices[i*batch .. (i+1)*batch) of part
 * "train" (the last step: what is left of count) at learning rate rates[i], as
 * step first+i since the start of training (from 0), which keys random draws and
 * Adam's bias correction. losses[i]: its mean loss (not finite: diverged);
 * correct: right predictions among `examples`, those seen. After an error the
 * parameters are those of some step in between. */
tx_status* tx_trainer_steps(tx_trainer* trainer, const int32_t* indices, int64_t count, int64_t batch,
                            const double* rates, int64_t steps, int64_t first, double* losses,
                            int64_t* correct, int64_t* examples);
/* Runs a part in inference mode, batch rows at a time: mean cross-entropy
 * without label smoothing, right predictions, examples. */
tx_status* tx_trainer_evaluate(tx_trainer* trainer, const char* part, int64_t batch, double* loss,
                               int64_t* correct, int64_t* examples);
enum { TX_STATE_PARAMETERS = 0, TX_STATE_OPTIMIZER = 1 };
/* JSON array of the names of the state dict (with buffers), or of the optimiser's
 * tensors ("fc.weight/momentum", "/exp_avg", "/exp_avg_sq"). */
tx_status* tx_trainer_names(const tx_trainer* trainer, int32_t state, char** json);
/* Copies of these tensors, in that order, count of them, as new CPU tensors: f32 (f64 at
 * that precision), num_batches_tracked i64. */
tx_status* tx_trainer_read(const tx_trainer* trainer, int32_t state, int64_t count, tx_tensor* tensors);
/* Copies a state in. Every parameter must be there, num_batches_tracked may be
 * missing; the optimiser's tensors must all be there, or none: a new optimiser. On
 * error the trainer is as before. */
tx_status* tx_trainer_write(tx_trainer* trainer, int64_t count, const char* const* names,
                            const tx_tensor* tensors, int64_t optimizer_count,
                            const char* const* optimizer_names, const tx_tensor* optimizer_tensors);
void tx_trainer_free(tx_trainer* trainer);

#ifdef __cplusplus
}
#endif
#endif
