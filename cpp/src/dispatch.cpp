#include "dispatch.h"

#include <algorithm>
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

// The last table is for any device.
const Table& TableFor(const Specialization& s, uint32_t device) {
  for (const Table& t : s.tables) {
    if (t.device == kNone || t.device == device) return t;
  }
  return s.tables.back();
}

Status Walk(const Table& t, const Call& call, const Leaf** leaf) {
  int64_t values[kMaxKeyFields];
  for (size_t i = 0; i < t.fields.size(); ++i) {
    const Status status = EvaluateFor(call, t.fields[i], "a field of the dispatch table", &values[i]);
    if (status != PRECAST_OK) return status;
  }
  uint32_t at = 0;
  while (t.nodes[at].field != kNone) {
    const Node& node = t.nodes[at];
    at = values[node.field] <= node.threshold ? node.left : node.right;
  }
  *leaf = &t.leaves[t.nodes[at].left];
  return PRECAST_OK;
}

bool WasMeasured(const Table& t, const int64_t* key, size_t fields) {
  if (fields == 0) return true;
  size_t low = 0, high = t.measured.size() / fields;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const int64_t* there = &t.measured[middle * fields];
    if (std::lexicographical_compare(there, there + fields, key, key + fields)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low * fields < t.measured.size() && std::equal(key, key + fields, &t.measured[low * fields]);
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

Rung RungOf(const Choice& choice) {
  if (choice.table == nullptr || !choice.tuned) return Rung::kStaticDefault;
  if (choice.table->rung != Rung::kMeasured) return choice.table->rung;
  return WasMeasured(*choice.table, choice.key, choice.op->key.size()) ? Rung::kMeasured : Rung::kNearestProblem;
}

Status Choose(Library* library, size_t op_index, const Call& call, const std::vector<Runnable>& runnable,
              const char* device, int32_t forced, bool want_key, Choice* choice) {
  Status status = RunChecks(call);
  if (status == PRECAST_OK) status = Specialize(call, &choice->specialization);
  if (status != PRECAST_OK) return status;
  const Operator& op = *call.op;
  for (size_t i = 0; (want_key || library->frozen()) && i < op.key.size(); ++i) {
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
    const bool named = forced != 0;
    if (named && (forced < 0 || static_cast<size_t>(forced) > s.candidates.size())) {
      return Fail(PRECAST_INVALID_ARGUMENT, "%s: there is no candidate %d: the specialization has %zu", op.name.c_str(),
                  forced, s.candidates.size());
    }
    const Table& table = TableFor(s, r.device);
    const Leaf* leaf = nullptr;
    status = Walk(table, call, &leaf);
    if (status != PRECAST_OK) return status;
    const size_t count = named ? 1 : leaf->choices.size();
    for (size_t i = 0; i < count; ++i) {
      const Candidate& candidate =
          target->candidates[named ? s.candidates[static_cast<size_t>(forced) - 1] : leaf->choices[i]];
      if (candidate.condition != kNone) {
        int64_t holds = 0;
        status = EvaluateFor(call, candidate.condition, candidate.config.c_str(), &holds);
        if (status != PRECAST_OK) return status;
        if (holds == 0) continue;
      }
      if (!PickVariants(call, candidate, conditions, choice->variants, &unmet)) continue;
      choice->pack = r.pack;
      choice->op = &own;
      choice->target = target;
      choice->candidate = &candidate;
      choice->table = named ? nullptr : &table;
      choice->tuned = i < leaf->tuned;
      if (library->frozen() && !named && RungOf(*choice) != Rung::kMeasured) {
        untuned = true;
        continue;
      }
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
