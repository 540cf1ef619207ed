/* precast C ABI.
 *
 * A library that precast builds exports one symbol, `precast_library_<family>`, which returns the
 * table of functions below. Everything else in the library is hidden, so any number of libraries,
 * and several copies of one, can live in one process.
 *
 * Rules of this ABI:
 *  - Structs that callers pass or read start with their `size`; they grow at the end only. A function
 *    reads no more than `size` bytes and treats what is missing as zero, so an old caller keeps working.
 *  - Tensors have the memory layout of DLPack's DLTensor: a `DLTensor*` is a valid `precast_tensor*`.
 *  - No function throws, none changes the current device, context or stream of the calling thread.
 *  - Every function may be called from any thread at any time.
 *  - A library stays in memory after dlclose: threads that end later free what it keeps for them.
 *  - A function that returns a status other than PRECAST_OK has launched nothing, and has left a
 *    message for the calling thread that `last_error` returns.
 */
#ifndef PRECAST_PRECAST_H_
#define PRECAST_PRECAST_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRECAST_ABI_VERSION 1

/* What a call came to. The message of `last_error` says what was asked, what is available, what to do. */
typedef int32_t precast_status;
enum {
  PRECAST_OK = 0,
  PRECAST_INVALID_ARGUMENT = 1, /* wrong count, kind, dtype, rank, shape, stride, device or overlap */
  PRECAST_UNSUPPORTED = 2,      /* a combination that is excluded, was not built or failed to build */
  PRECAST_NO_TARGET = 3,        /* the library has no code that this GPU can run */
  PRECAST_NO_DRIVER = 4,        /* no CUDA or HIP driver could be opened */
  PRECAST_DRIVER_ERROR = 5,     /* the driver refused; the message has its name and text */
  PRECAST_BAD_PACK = 6,         /* the pack is damaged */
  PRECAST_VERSION_MISMATCH = 7, /* pack and library, or pack and runtime, are of different builds */
  PRECAST_NO_PACK = 8,          /* the pack that the library needs is not there or can't be read */
  PRECAST_OUT_OF_MEMORY = 9,    /* host or device memory */
  PRECAST_UNTUNED = 10,         /* PRECAST_FROZEN is set and nothing was measured for this problem */
  PRECAST_ARITHMETIC = 11,      /* a grid or size expression overflowed or divided by zero */
  PRECAST_NOT_WARM = 12,        /* a kernel must be loaded, but the stream is capturing: call warmup */
  PRECAST_INTERNAL = 13
};

/* DLPack's device types that precast knows. */
enum { PRECAST_CPU = 1, PRECAST_CUDA = 2, PRECAST_ROCM = 10 };

/* Same layout as DLDevice. */
typedef struct precast_device {
  int32_t device_type;
  int32_t device_id;
} precast_device;

/* Same layout as DLDataType. Codes: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool, 7 and up the fp8 kinds. */
typedef struct precast_dtype {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} precast_dtype;

/* Same layout as DLTensor: strides in elements, or NULL for a compact row-major tensor. */
typedef struct precast_tensor {
  void* data;
  precast_device device;
  int32_t ndim;
  precast_dtype dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} precast_tensor;

/* One argument of an operator, in the order that the operator declares. */
enum { PRECAST_NONE = 0, PRECAST_TENSOR = 1, PRECAST_INT = 2, PRECAST_FLOAT = 3 };
typedef struct precast_value {
  int32_t kind;
  int32_t reserved;
  union {
    const precast_tensor* tensor;
    int64_t i; /* integers, bools and named values (by their index in the declaration) */
    double f;
  } u;
} precast_value;

/* How a call is to be made. Zero-initialise, set `size`, then what you need. A size of 0 is refused. */
typedef struct precast_options {
  size_t size;
  void* stream;       /* CUstream or hipStream_t; NULL is the default stream */
  const char* target; /* supports and explain only: answer for this target, e.g. "sm_90", GPU or not */
  int32_t
      device_type; /* supports, explain and warmup without tensors on a GPU: PRECAST_CUDA or PRECAST_ROCM; 0 is any */
  int32_t
      candidate; /* for tuning: the number, from 1, of the specialization's candidate to use; 0 is dispatch's choice */
} precast_options;

typedef struct precast_library precast_library;

typedef struct precast_api {
  size_t size;
  uint32_t abi_version;
  uint32_t reserved;

  /* The library's operators, arguments, targets and build id as a JSON text owned by the library. */
  precast_status (*describe)(precast_library* library, const char** json);

  /* Index of an operator by name, for `run` and the others. */
  precast_status (*find_operator)(precast_library* library, const char* name, int32_t* index);

  /* Enqueues an operator on options->stream. Allocates nothing and takes no lock once the kernel is
   * loaded on this device. */
  precast_status (*run)(precast_library* library, int32_t index, const precast_value* args, int32_t count,
                        const precast_options* options);

  /* PRECAST_OK if `run` would find a kernel for this call; otherwise the reason. Tensors' data may be
   * NULL (then taken as aligned) and on any device. */
  precast_status (*supports)(precast_library* library, int32_t index, const precast_value* args, int32_t count,
                             const precast_options* options);

  /* What `run` would do, as JSON: specialization, alignment class, plan, config, rung of the ladder,
   * registers, grid. The text belongs to the calling thread until its next call of this function. */
  precast_status (*explain)(precast_library* library, int32_t index, const precast_value* args, int32_t count,
                            const precast_options* options, const char** json);

  /* Loads what `run` would need for this call, launching nothing; with args NULL, every kernel of the
   * operator; with index -1, of the library. After it a call can be captured into a CUDA graph. */
  precast_status (*warmup)(precast_library* library, int32_t index, int32_t device_id, const precast_value* args,
                           int32_t count, const precast_options* options);

  /* Shape of the output argument `arg` for these arguments (outputs may be PRECAST_NONE): writes `ndim`,
   * up to 8 dims and the dtype. For callers that allocate outputs. */
  precast_status (*output_shape)(precast_library* library, int32_t index, const precast_value* args, int32_t count,
                                 int32_t arg, int32_t* ndim, int64_t* shape, precast_dtype* dtype);

  /* The message of the calling thread's last failed call; never NULL. */
  const char* (*last_error)(void);

  /* The name of a status, such as "PRECAST_NO_TARGET"; never NULL. */
  const char* (*status_name)(precast_status status);

  /* Frees what the library holds on all devices: modules, workspaces. No call may be under way. */
  precast_status (*release)(precast_library* library);
} precast_api;

/* What `precast_library_<family>` is: fills `*library` and returns the table, or returns NULL if
 * `abi_version` is newer than the library's. */
typedef const precast_api* (*precast_library_function)(uint32_t abi_version, precast_library** library);

#ifdef __cplusplus
}
#endif

#endif /* PRECAST_PRECAST_H_ */
