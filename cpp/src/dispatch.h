// From a bound call and the targets that a device can run to what is launched.
#ifndef PRECAST_SRC_DISPATCH_H_
#define PRECAST_SRC_DISPATCH_H_

#include "call.h"
#include "library.h"

namespace precast {

struct Choice {
  uint32_t pack = 0;
  const Operator* op = nullptr;  // of that pack; equal in all packs of a library but for its targets
  const OperatorTarget* target = nullptr;
  const Candidate* candidate = nullptr;
  const Table* table = nullptr;  // that the candidate comes from, or nullptr if the caller named it
  bool tuned = false;            // whether measurements chose it
  size_t specialization = 0;
  uint32_t variants[kMaxLaunches];  // of the candidate's launches
  int64_t key[kMaxKeyFields];       // of the operator's key fields, if it was asked for
};

// Chooses, or says why nothing can be: PRECAST_UNSUPPORTED, PRECAST_NO_TARGET, PRECAST_UNTUNED. `device` names
// what the targets were chosen for; `forced` is the number of a candidate, or 0; `want_key` says whether the choice's
// key is read.
Status Choose(Library* library, size_t op_index, const Call& call, const std::vector<Runnable>& runnable,
              const char* device, int32_t forced, bool want_key, Choice* choice);

// The rung of the ladder that a choice stands on.
Rung RungOf(const Choice& choice);

// Launches a choice on a device that is current.
Status LaunchChoice(Library* library, DeviceState* device, const Call& call, const Choice& choice, void* stream);

// Loads what a launch of the choice would need.
Status LoadChoice(Library* library, DeviceState* device, const Choice& choice, void* stream);

}  // namespace precast

#endif  // PRECAST_SRC_DISPATCH_H_
