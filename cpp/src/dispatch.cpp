#include "dispatch.h"

#include <cinttypes>

#include "log.h"

namespace precast {
namespace {

// The target's table of an operator in a pack, or nullptr.
const OperatorTarget* FindTarget(const Operator& op, uint32_t target) {
  for (const OperatorTarget& t : op.targets) {
    if (t.target == target) return &t;
  }
  return nullptr;
}

const std::vector<uint32_t>& Walk(const Specialization& s, const int64_t* key) {
  uint32_t at = 0;
  while (s.nodes[at].field != kNone) {
    const Node& node = s.nodes[at];
    at = key[node.field] <= node.threshold ? node.left : node.right;
  }
  return s.lists[s.nodes[at].left];
}

// Whether a launch has no programs, as calls with empty tensors do.
bool IsEmpty(const Call& call, const Launch& launch) {
  for (const uint32_t expression : launch.grid) {
    int64_t size = 1;
    if (Evaluate(call.op->expressions[expression], call.slots, &size) == Evaluation::kOk && size == 0) return true;
  }
  return false;
}

// The first variant of each launch whose class holds, any for one that launches nothing; false, with the first
// condition in the way, if a launch has none.
bool PickVariants(const Call& call, const Candidate& candidate, uint64_t conditions, uint32_t* variants,
                  uint32_t* unmet) {
  for (size_t i = 0; i < candidate.launches.size(); ++i) {
    bool found = false;
    uint64_t missing = 0;
    for (const LaunchVariant& v : candidate.launches[i].variants) {
      missing = v.class_mask & ~conditions;
      if (missing == 0) {
        variants[i] = v.variant;
        found = true;
        break;
      }
    }
    if (!found && IsEmpty(call, candidate.launches[i])) {
      variants[i] = candidate.launches[i].variants[0].variant;
    } else if (!found) {
      *unmet = static_cast<uint32_t>(__builtin_ctzll(missing));
      return false;
    }
  }
  return true;
}

}  // namespace

Status Choose(Library* library, size_t op_index, const Call& call, const std::vector<Runnable>& runnable,
              const char* device, Choice* choice) {
  Status status = RunChecks(call);
  if (status == PRECAST_OK) status = Specialize(call, &choice->specialization);
  if (status != PRECAST_OK) return status;
  const Operator& op = *call.op;
  for (size_t i = 0; i < op.key.size(); ++i) {
    status = EvaluateFor(call, op.key[i].expression, op.key[i].name.c_str(), &choice->key[i]);
    if (status != PRECAST_OK) return status;
  }
  if (runnable.empty()) {
    return Fail(PRECAST_NO_TARGET, "%s: the library has no code for %s; it has %s: build it for that target too",
                op.name.c_str(), device, library->TargetNames().c_str());
  }
  const uint64_t conditions = Conditions(call);
  std::string reason;
  uint32_t unmet = kNone;
  bool untuned = false;
  for (const Runnable& r : runnable) {
    const Operator& own = library->packs()[r.pack]->operators[op_index];
    const OperatorTarget* target = FindTarget(own, r.target);
    if (target == nullptr) continue;
    const Specialization& s = target->specializations[choice->specialization];
    if (s.status != SpecializationStatus::kBuilt) {
      if (reason.empty()) reason = s.reason;
      continue;
    }
    for (const uint32_t index : Walk(s, choice->key)) {
      const Candidate& candidate = target->candidates[index];
      if (candidate.condition != kNone) {
        int64_t holds = 0;
        status = EvaluateFor(call, candidate.condition, candidate.config.c_str(), &holds);
        if (status != PRECAST_OK) return status;
        if (holds == 0) continue;
      }
      if (!PickVariants(call, candidate, conditions, choice->variants, &unmet)) continue;
      if (library->frozen() && candidate.rung != Rung::kMeasured) {
        untuned = true;
        continue;
      }
      choice->pack = r.pack;
      choice->op = &own;
      choice->target = target;
      choice->candidate = &candidate;
      return PRECAST_OK;
    }
  }
  if (untuned) {
    std::string problem;
    for (size_t i = 0; i < op.key.size(); ++i) {
      problem += Format("%s%s=%" PRId64, i == 0 ? "" : ", ", op.key[i].name.c_str(), choice->key[i]);
    }
    return Fail(PRECAST_UNTUNED, "%s: PRECAST_FROZEN is set and nothing was measured on %s for %s", op.name.c_str(),
                device, problem.empty() ? "this operator" : problem.c_str());
  }
  if (unmet != kNone) {
    return Fail(PRECAST_UNSUPPORTED, "%s: %s, and no variant without that assumption was built", op.name.c_str(),
                DescribeUnmet(call, unmet).c_str());
  }
  return Fail(PRECAST_UNSUPPORTED, "%s on %s: %s", op.name.c_str(), device,
              reason.empty() ? "no config is for this call" : reason.c_str());
}

}  // namespace precast
