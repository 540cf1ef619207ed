// A pack in memory: parsed, and every index in it known to be in range.
#ifndef PRECAST_SRC_PACK_H_
#define PRECAST_SRC_PACK_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "error.h"
#include "expression.h"

namespace precast {

constexpr uint32_t kNone = 0xFFFFFFFFu;
constexpr uint32_t kFormatVersion = 2;
constexpr size_t kHeaderBytes = 72;

// Limits that let a call work on the stack alone.
constexpr size_t kMaxArguments = 64;
constexpr size_t kMaxSlots = 512;
constexpr size_t kMaxConditions = 64;
constexpr size_t kMaxParams = 256;
constexpr size_t kMaxTensorMaps = 16;
constexpr size_t kMaxKeyFields = 32;
constexpr size_t kMaxWorkspaces = 32;
constexpr size_t kMaxLaunches = 16;
constexpr size_t kMaxRank = 8;
constexpr size_t kWorkspaceAlignment = 256;  // of each workspace and scratch in a call's one allocation
constexpr size_t kMaxBases = 8;              // above one code object

enum class ArgumentKind : uint8_t { kTensor, kInt, kFloat, kBool, kChoice, kCount };
enum class SlotKind : uint8_t { kDim, kStride, kInt, kPresent, kDtype, kDevice, kCount };
enum class ConditionKind : uint8_t {
  kPointersDiv16,
  kSlotsDiv16,
  kSlotsEq1,
  kSlotsInt32,
  kOffsetsInt32,
  kRangeInt32,
  kTensorMaps,
  kCount
};
enum class ParamKind : uint8_t {
  kPointer,
  kSlot,
  kExpression,
  kFloat,
  kWorkspace,
  kTensorMap,
  kGlobalScratch,
  kProfileScratch,
  kConstant,
  kCount
};
enum class ScalarType : uint8_t {
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kFp16,
  kBf16,
  kFp32,
  kFp64,
  kPointer,
  kTensorMap,
  kCount
};
enum class CodeKind : uint8_t { kCubin, kHsaco, kPtx, kCount };
enum class SpecializationStatus : uint8_t { kBuilt, kExcluded, kFailed, kNotBuilt, kCount };
enum class Rung : uint8_t { kMeasured, kNearestProblem, kOtherDevice, kSiblingTarget, kStaticDefault, kCount };
enum VariantFlag : uint32_t { kCooperative = 1, kDependentLaunch = 2 };

struct Argument {
  std::string name;
  ArgumentKind kind{};
  bool optional = false;
  bool output = false;
  uint32_t in_place_with = kNone;
  uint8_t rank = 0;
  uint32_t type_variable = kNone;
  uint16_t fixed_dtype = 0;
  std::vector<std::string> labels;
  int64_t default_int = 0;
  double default_float = 0;
  std::vector<uint32_t> shape;
  std::string shape_text;
};

struct Slot {
  SlotKind kind{};
  uint16_t argument = 0;
  uint8_t axis = 0;
  std::string name;
};

struct Check {
  uint32_t expression = 0;
  uint32_t status = 0;
  std::string message;
};

struct TypeVariable {
  std::string name;
  uint32_t argument = 0;
  std::vector<uint16_t> dtypes;
  std::vector<std::string> names;
};

struct Feature {
  std::string name;
  uint32_t expression = 0;
  std::vector<int64_t> values;
  std::vector<std::string> labels;
};

struct KeyField {
  std::string name;
  uint32_t expression = 0;
};

struct Condition {
  ConditionKind kind{};
  std::vector<uint32_t> indices;
};

struct Param {
  ParamKind kind{};
  ScalarType type{};
  uint32_t index = 0;
};

struct TensorMap {
  uint32_t argument = 0;
  uint8_t data_type = 0;
  uint8_t element_bytes = 0;
  uint8_t swizzle = 0;
  uint8_t fill_nan = 0;
  uint8_t fp4_padded = 0;
  std::vector<uint32_t> box;
  std::vector<uint32_t> shape;
  std::vector<uint32_t> strides;
};

struct Variant {
  uint32_t object = 0;
  std::string function;
  std::string kernel;
  uint32_t threads = 0;
  uint32_t shared_bytes = 0;
  uint32_t cluster = 1;
  uint32_t flags = 0;
  uint32_t global_scratch_bytes = 0;
  uint32_t global_scratch_align = 1;
  uint32_t profile_scratch_bytes = 0;
  uint32_t profile_scratch_align = 1;
  uint32_t registers = 0;
  uint32_t spills = 0;
  std::vector<Param> params;
  std::vector<TensorMap> tensor_maps;
  std::string class_name;
};

struct LaunchVariant {
  uint64_t class_mask = 0;
  uint32_t variant = 0;
};

struct Launch {
  std::vector<LaunchVariant> variants;
  std::array<uint32_t, 3> grid{};
};

struct Workspace {
  std::string name;
  uint32_t bytes = 0;
  bool zero = false;
};

struct Candidate {
  std::string plan;
  std::string config;
  uint32_t condition = kNone;
  std::string source;
  std::vector<Workspace> workspaces;
  std::vector<Launch> launches;
};

struct Node {
  uint32_t field = kNone;
  int64_t threshold = 0;
  uint32_t left = 0;
  uint32_t right = 0;
};

struct Leaf {
  std::vector<uint32_t> choices;
  uint32_t tuned = 0;  // how many of the first were chosen by measurements
};

struct Table {
  uint32_t device = kNone;  // index into the pack's devices, or any
  Rung rung{};
  float mean_regret = -1;
  float worst_regret = -1;
  std::vector<uint32_t> fields;  // expressions that nodes compare
  std::vector<Node> nodes;
  std::vector<Leaf> leaves;
  std::vector<int64_t> measured;  // keys, sorted, one after the other
};

struct Specialization {
  SpecializationStatus status{};
  std::string reason;
  std::vector<uint32_t> candidates;
  std::vector<Table> tables;  // the first that is for the device is used; the last is for any
};

struct OperatorTarget {
  uint32_t target = 0;
  uint32_t first_variant = 0;  // of this pack's variants, counted over all operators and targets
  std::vector<Candidate> candidates;
  std::vector<Variant> variants;
  std::vector<Specialization> specializations;
};

struct Operator {
  std::string name;
  std::string doc;
  std::vector<Argument> arguments;
  std::vector<Slot> slots;
  std::vector<Expression> expressions;
  std::vector<Check> checks;
  std::vector<TypeVariable> types;
  std::vector<Feature> features;
  std::vector<KeyField> key;
  std::vector<Condition> conditions;
  std::vector<OperatorTarget> targets;
};

struct CodeObject {
  std::array<uint8_t, 32> sha256{};
  CodeKind kind{};
  uint32_t raw_bytes = 0;
  uint32_t stored_bytes = 0;
  uint32_t crc = 0;
  uint32_t base = kNone;  // an earlier object, whose raw bytes are this one's prefix
  uint64_t offset = 0;
};

struct Pack {
  const uint8_t* data = nullptr;
  size_t size = 0;
  std::array<uint8_t, 16> build_id{};
  std::string family;
  std::string precast_version;
  std::string triton_version;
  std::vector<std::string> notes;
  std::vector<std::string> targets;
  std::vector<std::string> devices;
  std::vector<CodeObject> objects;
  std::vector<Operator> operators;
  uint32_t variant_count = 0;
  uint64_t metadata_stored = 0;
  uint64_t metadata_raw = 0;
  std::vector<uint8_t> metadata;  // expressions point into it
};

std::string Hex(const uint8_t* data, size_t size);

// Parses a pack that starts at `data`; it must stay there. `where` names it in messages.
// Returns PRECAST_BAD_PACK or PRECAST_VERSION_MISMATCH, with what is wrong, if it can't be trusted.
Status ParsePack(const uint8_t* data, size_t size, const char* where, std::unique_ptr<Pack>* out);

// The part of ParsePack after header and checksums; for the fuzzer. `objects_bytes` is the room for objects.
Status ParseMetadata(std::vector<uint8_t> metadata, uint64_t objects_offset, uint64_t file_bytes, const char* where,
                     Pack* pack);

// Whether every index is in range, every expression well formed, every tree finite. Part of ParseMetadata.
Status ValidatePack(const Pack& pack, const char* where);

// A code object's raw bytes, decompressed after its bases; each is checked against its checksum.
Status Decompress(const Pack& pack, const CodeObject& object, std::vector<uint8_t>* raw);

// Whether the build id is the digest of the metadata, which names every code object by its own.
bool BuildIdHolds(const Pack& pack);

// Checks every byte of a parsed pack: its build id, each object's checksum, decompression and digest.
Status VerifyObjects(const Pack& pack, const char* where);

}  // namespace precast

#endif  // PRECAST_SRC_PACK_H_
