// One call of an operator: its arguments, bound and checked, and the facts that dispatch reads.
#ifndef PRECAST_SRC_CALL_H_
#define PRECAST_SRC_CALL_H_

#include <string>

#include "pack.h"

namespace precast {

enum class Purpose {
  kRun,      // everything must be there, on one GPU
  kAsk,      // supports, explain: data may be null, devices are not looked at, outputs may be missing
  kOutputs,  // output_shape: outputs are missing
};

// Without initialisers, so that an array of them costs nothing until an argument is bound.
struct BoundTensor {
  const precast_tensor* tensor;  // nullptr if absent
  const int64_t* strides;
  char* data;       // with the byte offset
  int64_t lowest;   // byte offset of the first byte that belongs to an element, relative to data
  int64_t highest;  // of the last
  bool bounded;     // whether these two are below 2^62
  bool empty;
};

// Lives on the stack of a call. Arrays are not initialised: only the first entries, as counted by the
// operator, have values.
struct Call {
  const Operator* op = nullptr;
  BoundTensor tensors[kMaxArguments];
  int64_t ints[kMaxArguments];
  double floats[kMaxArguments];
  int64_t slots[kMaxSlots];
  int64_t compact[kMaxArguments][kMaxRank];
  int device_type = 0;
  int device_id = 0;
  bool any_tensor = false;
};

// Binds and checks arguments; fills all slots but those that a device gives.
Status Bind(const Operator& op, const precast_value* args, int32_t count, Purpose purpose, Call* call);

// Fills the slots that a device gives.
void BindDevice(const Operator& op, int multiprocessors, Call* call);

// Evaluates an expression of the operator; overflow and division by zero become PRECAST_ARITHMETIC.
Status EvaluateFor(const Call& call, uint32_t expression, const char* what, int64_t* value);

// Checks of the description, then the specialization that the call has: its index, or PRECAST_UNSUPPORTED.
Status Specialize(const Call& call, size_t* specialization);

// The dtype that a type variable has in a specialization.
uint16_t DtypeOf(const Operator& op, size_t specialization, uint32_t type_variable);
Status RunChecks(const Call& call);

// Which conditions of the operator hold, as bits.
uint64_t Conditions(const Call& call);

// The first fact behind the condition that does not hold, in words.
std::string DescribeUnmet(const Call& call, uint32_t condition);

std::string DtypeName(uint16_t packed);

}  // namespace precast

#endif  // PRECAST_SRC_CALL_H_
