// Checks that let everything after trust a pack: indices in range, expressions well formed, trees finite.
#include "pack.h"

namespace precast {
namespace {

class Validator {
 public:
  Validator(const Pack& pack, const Operator& op) : pack_(pack), op_(op) {}

  // What is wrong, or nullptr.
  const char* Run() {
    if (op_.arguments.size() > kMaxArguments || op_.slots.size() > kMaxSlots ||
        op_.conditions.size() > kMaxConditions || op_.key.size() > kMaxKeyFields || op_.types.size() > kMaxArguments) {
      return "too many arguments, slots, conditions or key fields";
    }
    for (const Argument& a : op_.arguments) {
      if (const char* problem = CheckArgument(a)) return problem;
    }
    for (const Slot& s : op_.slots) {
      if (const char* problem = CheckSlot(s)) return problem;
    }
    for (const Expression& e : op_.expressions) {
      if (!VerifyExpression(e, op_.slots.size())) return "an expression is malformed";
    }
    for (const Check& c : op_.checks) {
      if (!IsExpression(c.expression) || c.status == PRECAST_OK || c.status > PRECAST_INTERNAL) return "a check";
    }
    size_t count = 1;
    for (const TypeVariable& t : op_.types) {
      if (!IsTensor(t.argument) || t.dtypes.empty() || t.names.size() != t.dtypes.size()) return "a type variable";
      if (__builtin_mul_overflow(count, t.dtypes.size(), &count)) return "too many specializations";
    }
    for (const Feature& f : op_.features) {
      if (!IsExpression(f.expression) || f.values.empty() || f.labels.size() != f.values.size()) return "a feature";
      if (__builtin_mul_overflow(count, f.values.size(), &count)) return "too many specializations";
    }
    for (const KeyField& k : op_.key) {
      if (!IsExpression(k.expression)) return "a key field";
    }
    for (const Condition& c : op_.conditions) {
      if (const char* problem = CheckCondition(c)) return problem;
    }
    for (const OperatorTarget& t : op_.targets) {
      if (t.target >= pack_.targets.size()) return "a target";
      if (t.specializations.size() != count) return "the number of specializations";
      for (const Variant& v : t.variants) {
        if (const char* problem = CheckVariant(v)) return problem;
      }
      for (const Candidate& c : t.candidates) {
        if (const char* problem = CheckCandidate(t, c)) return problem;
      }
      for (const Specialization& s : t.specializations) {
        if (const char* problem = CheckSpecialization(t, s)) return problem;
      }
    }
    return nullptr;
  }

 private:
  bool IsExpression(uint32_t index) const { return index < op_.expressions.size(); }
  bool IsSlot(uint32_t index) const { return index < op_.slots.size(); }
  bool IsArgument(uint32_t index) const { return index < op_.arguments.size(); }
  bool IsTensor(uint32_t index) const {
    return IsArgument(index) && op_.arguments[index].kind == ArgumentKind::kTensor;
  }

  const char* CheckArgument(const Argument& a) const {
    if (a.kind >= ArgumentKind::kCount) return "an argument's kind";
    if (a.kind == ArgumentKind::kChoice && a.labels.empty()) return "a choice without labels";
    if (a.kind != ArgumentKind::kTensor) {
      const bool plain = !a.output && a.shape.empty() && a.type_variable == kNone && a.in_place_with == kNone;
      return plain ? nullptr : "a number with what only tensors have";
    }
    if (a.rank > kMaxRank) return "a tensor's rank";
    if (a.type_variable != kNone && a.type_variable >= op_.types.size()) return "a tensor's type variable";
    if (a.in_place_with != kNone && !IsTensor(a.in_place_with)) return "an in-place argument";
    if (!a.shape.empty() && a.shape.size() != a.rank) return "an output's shape";
    for (uint32_t e : a.shape) {
      if (!IsExpression(e)) return "an output's shape";
    }
    return nullptr;
  }

  const char* CheckSlot(const Slot& s) const {
    if (s.kind >= SlotKind::kCount) return "a slot's kind";
    if (!IsArgument(s.argument)) return "a slot's argument";
    if (s.kind == SlotKind::kDevice) return nullptr;
    const Argument& a = op_.arguments[s.argument];
    const bool scalar = s.kind == SlotKind::kInt;
    if (scalar ? a.kind == ArgumentKind::kTensor || a.kind == ArgumentKind::kFloat : a.kind != ArgumentKind::kTensor) {
      return "a slot's argument";
    }
    if ((s.kind == SlotKind::kDim || s.kind == SlotKind::kStride) && s.axis >= a.rank) return "a slot's axis";
    return nullptr;
  }

  const char* CheckCondition(const Condition& c) const {
    if (c.kind >= ConditionKind::kCount || c.indices.empty()) return "a condition";
    const bool slots = c.kind == ConditionKind::kSlotsDiv16 || c.kind == ConditionKind::kSlotsEq1 ||
                       c.kind == ConditionKind::kSlotsInt32;
    for (uint32_t index : c.indices) {
      if (slots ? !IsSlot(index) : !IsTensor(index)) return "a condition's index";
    }
    return nullptr;
  }

  const char* CheckVariant(const Variant& v) const {
    if (v.object >= pack_.objects.size()) return "a code object";
    if (v.params.size() > kMaxParams || v.tensor_maps.size() > kMaxTensorMaps) return "too many parameters";
    if (v.threads == 0 || v.threads > 1024 || v.cluster == 0 || v.cluster > 16) return "threads or cluster";
    if (v.function.find('\0') != std::string::npos) return "a function's name";
    for (uint32_t align : {v.global_scratch_align, v.profile_scratch_align}) {
      if (align == 0 || align > kWorkspaceAlignment || (align & (align - 1)) != 0) return "a scratch alignment";
    }
    for (const Param& p : v.params) {
      if (const char* problem = CheckParam(v, p)) return problem;
    }
    for (const TensorMap& m : v.tensor_maps) {
      if (!IsTensor(m.argument)) return "a tensor map's argument";
      const size_t rank = op_.arguments[m.argument].rank;
      if (rank == 0 || rank > 5 || m.box.size() != rank || m.element_bytes == 0) return "a tensor map's shape";
      for (uint32_t e : m.shape) {
        if (!IsExpression(e)) return "a tensor map's shape";
      }
      for (uint32_t e : m.strides) {
        if (!IsExpression(e)) return "a tensor map's strides";
      }
      if ((!m.shape.empty() && m.shape.size() != rank) || (!m.strides.empty() && m.strides.size() != rank)) {
        return "a tensor map's shape";
      }
    }
    return nullptr;
  }

  const char* CheckParam(const Variant& v, const Param& p) const {
    if (p.kind >= ParamKind::kCount || p.type >= ScalarType::kCount) return "a parameter's kind";
    const bool pointer = p.type == ScalarType::kPointer;
    const bool integer = p.type <= ScalarType::kU64;
    const bool floating = p.type >= ScalarType::kFp16 && p.type <= ScalarType::kFp64;
    bool good = false;
    switch (p.kind) {
      case ParamKind::kPointer: good = pointer && IsTensor(p.index); break;
      case ParamKind::kSlot: good = integer && IsSlot(p.index); break;
      case ParamKind::kExpression:
      case ParamKind::kConstant: good = integer && IsExpression(p.index); break;
      case ParamKind::kFloat:
        good = floating && IsArgument(p.index) && op_.arguments[p.index].kind == ArgumentKind::kFloat;
        break;
      case ParamKind::kWorkspace: good = pointer && p.index < kMaxWorkspaces; break;
      case ParamKind::kTensorMap: good = p.type == ScalarType::kTensorMap && p.index < v.tensor_maps.size(); break;
      case ParamKind::kGlobalScratch:
      case ParamKind::kProfileScratch: good = pointer; break;
      default: break;
    }
    return good ? nullptr : "a parameter";
  }

  const char* CheckCandidate(const OperatorTarget& t, const Candidate& c) const {
    if (c.condition != kNone && !IsExpression(c.condition)) return "a candidate's condition";
    if (c.workspaces.size() > kMaxWorkspaces || c.launches.size() > kMaxLaunches || c.launches.empty()) {
      return "a candidate's launches";
    }
    for (const Workspace& w : c.workspaces) {
      if (!IsExpression(w.bytes)) return "a workspace's size";
    }
    const uint64_t known = op_.conditions.size() == 64 ? ~uint64_t{0} : (uint64_t{1} << op_.conditions.size()) - 1;
    for (const Launch& launch : c.launches) {
      if (launch.variants.empty()) return "a launch without variants";
      for (const LaunchVariant& v : launch.variants) {
        if (v.variant >= t.variants.size() || (v.class_mask & ~known) != 0) return "a launch's variant";
        for (const Param& p : t.variants[v.variant].params) {
          if (p.kind == ParamKind::kWorkspace && p.index >= c.workspaces.size()) return "a workspace";
        }
      }
      for (uint32_t e : launch.grid) {
        if (!IsExpression(e)) return "a grid";
      }
    }
    return nullptr;
  }

  const char* CheckSpecialization(const OperatorTarget& t, const Specialization& s) const {
    if (s.status >= SpecializationStatus::kCount) return "a specialization's status";
    for (uint32_t c : s.candidates) {
      if (c >= t.candidates.size()) return "a specialization's candidate";
    }
    if (s.status == SpecializationStatus::kBuilt && (s.tables.empty() || s.tables.back().device != kNone)) {
      return "a specialization without a table for any device";
    }
    for (const Table& table : s.tables) {
      if (const char* problem = CheckTable(t, table)) return problem;
    }
    return nullptr;
  }

  const char* CheckTable(const OperatorTarget& t, const Table& table) const {
    if (table.device != kNone && table.device >= pack_.devices.size()) return "a table's device";
    if (table.rung >= Rung::kCount) return "a table's rung";
    if (table.nodes.empty()) return "a table without a decision";
    if (table.fields.size() > kMaxKeyFields) return "a table's fields";
    for (const uint32_t e : table.fields) {
      if (!IsExpression(e)) return "a table's field";
    }
    for (size_t i = 0; i < table.nodes.size(); ++i) {
      const Node& n = table.nodes[i];
      if (n.field == kNone) {
        if (n.left >= table.leaves.size()) return "a decision's leaf";
        continue;
      }
      const bool forward = n.left > i && n.right > i && n.left < table.nodes.size() && n.right < table.nodes.size();
      if (n.field >= table.fields.size() || !forward) return "a decision";
    }
    for (const Leaf& leaf : table.leaves) {
      if (leaf.choices.empty() || leaf.tuned > leaf.choices.size()) return "a leaf's choices";
      for (uint32_t c : leaf.choices) {
        if (c >= t.candidates.size()) return "a choice";
      }
    }
    const bool whole = op_.key.empty() ? table.measured.empty() : table.measured.size() % op_.key.size() == 0;
    return whole ? nullptr : "a table's measured keys";
  }

  const Pack& pack_;
  const Operator& op_;
};

}  // namespace

Status ValidatePack(const Pack& pack, const char* where) {
  for (size_t i = 0; i < pack.objects.size(); ++i) {
    const CodeObject& o = pack.objects[i];
    if (o.kind >= CodeKind::kCount || (o.base != kNone && o.base >= i)) {
      return Fail(PRECAST_BAD_PACK, "%s: the pack is damaged: a code object's record", where);
    }
  }
  for (const Operator& op : pack.operators) {
    if (const char* problem = Validator(pack, op).Run()) {
      return Fail(PRECAST_BAD_PACK, "%s: the pack is damaged: operator %s: %s", where, op.name.c_str(), problem);
    }
  }
  return PRECAST_OK;
}

}  // namespace precast
