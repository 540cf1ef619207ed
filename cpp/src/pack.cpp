#include "pack.h"

#include <zstd.h>

#include <cstring>
#include <new>

#include "checksum.h"
#include "cursor.h"

namespace precast {
namespace {

constexpr char kMagic[8] = {'P', 'R', 'E', 'C', 'A', 'S', 'T', '\0'};
constexpr uint64_t kMaxMetadata = uint64_t{1} << 30;
constexpr uint64_t kAnyMetadata = uint64_t{1} << 20;  // above it, the ratio counts
constexpr uint64_t kMaxRatio = 256;                   // of metadata; real ones shrink to a fourth or a tenth
constexpr uint32_t kMaxObject = uint32_t{1} << 30;

bool ReadBool(Cursor* c) { return c->Read<uint8_t>() != 0; }

Argument ReadArgument(Cursor* c) {
  Argument a;
  a.name = c->Text();
  a.kind = static_cast<ArgumentKind>(c->Read<uint8_t>());
  a.optional = ReadBool(c);
  a.output = ReadBool(c);
  a.in_place_with = c->Read<uint32_t>();
  a.rank = c->Read<uint8_t>();
  a.type_variable = c->Read<uint32_t>();
  a.fixed_dtype = c->Read<uint16_t>();
  c->Texts(&a.labels);
  a.default_int = c->Read<int64_t>();
  a.default_float = c->Read<double>();
  c->Numbers(&a.shape);
  a.shape_text = c->Text();
  return a;
}

Slot ReadSlot(Cursor* c) {
  Slot s;
  s.kind = static_cast<SlotKind>(c->Read<uint8_t>());
  s.argument = c->Read<uint16_t>();
  s.axis = c->Read<uint8_t>();
  s.name = c->Text();
  return s;
}

Expression ReadExpression(Cursor* c) {
  Expression e;
  e.size = c->Read<uint32_t>();
  e.code = c->Bytes(e.size);
  if (e.code == nullptr) e.size = 0;
  return e;
}

TensorMap ReadTensorMap(Cursor* c) {
  TensorMap t;
  t.argument = c->Read<uint32_t>();
  t.data_type = c->Read<uint8_t>();
  t.element_bytes = c->Read<uint8_t>();
  t.swizzle = c->Read<uint8_t>();
  t.fill_nan = c->Read<uint8_t>();
  t.fp4_padded = c->Read<uint8_t>();
  c->Numbers(&t.box);
  c->Numbers(&t.shape);
  c->Numbers(&t.strides);
  return t;
}

Variant ReadVariant(Cursor* c) {
  Variant v;
  v.object = c->Read<uint32_t>();
  v.function = c->Text();
  v.kernel = c->Text();
  v.threads = c->Read<uint32_t>();
  v.shared_bytes = c->Read<uint32_t>();
  v.cluster = c->Read<uint32_t>();
  v.flags = c->Read<uint32_t>();
  v.global_scratch_bytes = c->Read<uint32_t>();
  v.global_scratch_align = c->Read<uint32_t>();
  v.profile_scratch_bytes = c->Read<uint32_t>();
  v.profile_scratch_align = c->Read<uint32_t>();
  v.registers = c->Read<uint32_t>();
  v.spills = c->Read<uint32_t>();
  c->List(&v.params, 6, [c] {
    Param p;
    p.kind = static_cast<ParamKind>(c->Read<uint8_t>());
    p.type = static_cast<ScalarType>(c->Read<uint8_t>());
    p.index = c->Read<uint32_t>();
    return p;
  });
  c->List(&v.tensor_maps, 21, [c] { return ReadTensorMap(c); });
  v.class_name = c->Text();
  return v;
}

Candidate ReadCandidate(Cursor* c) {
  Candidate x;
  x.plan = c->Text();
  x.config = c->Text();
  x.condition = c->Read<uint32_t>();
  x.source = c->Text();
  c->List(&x.workspaces, 9, [c] {
    Workspace w;
    w.name = c->Text();
    w.bytes = c->Read<uint32_t>();
    w.zero = ReadBool(c);
    return w;
  });
  c->List(&x.launches, 16, [c] {
    Launch launch;
    c->List(&launch.variants, 12, [c] {
      LaunchVariant v;
      v.class_mask = c->Read<uint64_t>();
      v.variant = c->Read<uint32_t>();
      return v;
    });
    for (uint32_t& size : launch.grid) size = c->Read<uint32_t>();
    return launch;
  });
  return x;
}

Table ReadTable(Cursor* c) {
  Table t;
  t.device = c->Read<uint32_t>();
  t.rung = static_cast<Rung>(c->Read<uint8_t>());
  t.mean_regret = c->Read<float>();
  t.worst_regret = c->Read<float>();
  c->Numbers(&t.fields);
  c->List(&t.nodes, 20, [c] {
    Node n;
    n.field = c->Read<uint32_t>();
    n.threshold = c->Read<int64_t>();
    n.left = c->Read<uint32_t>();
    n.right = c->Read<uint32_t>();
    return n;
  });
  c->List(&t.leaves, 8, [c] {
    Leaf leaf;
    c->Numbers(&leaf.choices);
    leaf.tuned = c->Read<uint32_t>();
    return leaf;
  });
  c->List(&t.measured, 8, [c] { return c->Read<int64_t>(); });
  return t;
}

Specialization ReadSpecialization(Cursor* c) {
  Specialization s;
  s.status = static_cast<SpecializationStatus>(c->Read<uint8_t>());
  s.reason = c->Text();
  c->Numbers(&s.candidates);
  c->List(&s.tables, 29, [c] { return ReadTable(c); });
  return s;
}

OperatorTarget ReadTarget(Cursor* c) {
  OperatorTarget t;
  t.target = c->Read<uint32_t>();
  c->List(&t.candidates, 24, [c] { return ReadCandidate(c); });
  c->List(&t.variants, 60, [c] { return ReadVariant(c); });
  c->List(&t.specializations, 13, [c] { return ReadSpecialization(c); });
  return t;
}

Operator ReadOperator(Cursor* c) {
  Operator op;
  op.name = c->Text();
  op.doc = c->Text();
  c->List(&op.arguments, 48, [c] { return ReadArgument(c); });
  c->List(&op.slots, 8, [c] { return ReadSlot(c); });
  c->List(&op.expressions, 4, [c] { return ReadExpression(c); });
  c->List(&op.checks, 12, [c] {
    Check x;
    x.expression = c->Read<uint32_t>();
    x.status = c->Read<uint32_t>();
    x.message = c->Text();
    return x;
  });
  c->List(&op.types, 16, [c] {
    TypeVariable t;
    t.name = c->Text();
    t.argument = c->Read<uint32_t>();
    c->Numbers(&t.dtypes);
    c->Texts(&t.names);
    return t;
  });
  c->List(&op.features, 16, [c] {
    Feature f;
    f.name = c->Text();
    f.expression = c->Read<uint32_t>();
    c->Numbers(&f.values);
    c->Texts(&f.labels);
    return f;
  });
  c->List(&op.key, 8, [c] {
    KeyField k;
    k.name = c->Text();
    k.expression = c->Read<uint32_t>();
    return k;
  });
  c->List(&op.conditions, 5, [c] {
    Condition x;
    x.kind = static_cast<ConditionKind>(c->Read<uint8_t>());
    c->Numbers(&x.indices);
    return x;
  });
  c->List(&op.targets, 16, [c] { return ReadTarget(c); });
  return op;
}

CodeObject ReadObject(Cursor* c) {
  CodeObject o;
  const uint8_t* digest = c->Bytes(o.sha256.size());
  if (digest != nullptr) memcpy(o.sha256.data(), digest, o.sha256.size());
  o.kind = static_cast<CodeKind>(c->Read<uint8_t>());
  o.raw_bytes = c->Read<uint32_t>();
  o.stored_bytes = c->Read<uint32_t>();
  o.crc = c->Read<uint32_t>();
  o.base = c->Read<uint32_t>();
  return o;
}

Status Inflate(const uint8_t* stored, size_t stored_bytes, const std::vector<uint8_t>& prefix,
               std::vector<uint8_t>* raw) {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  if (context == nullptr) return Fail(PRECAST_OUT_OF_MEMORY, "no memory to decompress");
  ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, 31);  // one-shot: the window is the output itself
  ZSTD_DCtx_refPrefix(context, prefix.data(), prefix.size());
  const size_t got = ZSTD_decompressDCtx(context, raw->data(), raw->size(), stored, stored_bytes);
  ZSTD_freeDCtx(context);
  if (ZSTD_isError(got) != 0 || got != raw->size()) {
    return Fail(PRECAST_BAD_PACK, "the pack is damaged: a compressed part can't be decompressed (%s)",
                ZSTD_isError(got) != 0 ? ZSTD_getErrorName(got) : "wrong size");
  }
  return PRECAST_OK;
}

}  // namespace

std::string Hex(const uint8_t* data, size_t size) {
  const char* digits = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    text += digits[data[i] >> 4];
    text += digits[data[i] & 15];
  }
  return text;
}

Status ParseMetadata(std::vector<uint8_t> metadata, uint64_t objects_offset, uint64_t file_bytes, const char* where,
                     Pack* pack) {
  pack->metadata = std::move(metadata);
  Cursor c(pack->metadata.data(), pack->metadata.size());
  pack->family = c.Text();
  pack->precast_version = c.Text();
  pack->triton_version = c.Text();
  c.Texts(&pack->notes);
  c.Texts(&pack->targets);
  c.Texts(&pack->devices);
  c.List(&pack->objects, 49, [&c] { return ReadObject(&c); });
  c.List(&pack->operators, 40, [&c] { return ReadOperator(&c); });
  if (!c.AtEnd()) return Fail(PRECAST_BAD_PACK, "%s: the pack is damaged: its metadata doesn't parse", where);
  uint64_t offset = objects_offset;
  for (CodeObject& o : pack->objects) {
    o.offset = offset;
    offset += o.stored_bytes;
    if (o.raw_bytes > kMaxObject) return Fail(PRECAST_BAD_PACK, "%s: the pack is damaged: a huge code object", where);
  }
  if (offset != file_bytes) {
    return Fail(PRECAST_BAD_PACK, "%s: the pack is damaged: its parts take %llu bytes, the file has %llu", where,
                static_cast<unsigned long long>(offset), static_cast<unsigned long long>(file_bytes));
  }
  for (Operator& op : pack->operators) {
    for (OperatorTarget& t : op.targets) {
      t.first_variant = pack->variant_count;
      pack->variant_count += static_cast<uint32_t>(t.variants.size());
    }
  }
  return ValidatePack(*pack, where);
}

Status ParsePack(const uint8_t* data, size_t size, const char* where, std::unique_ptr<Pack>* out) {
  if (size < kHeaderBytes || memcmp(data, kMagic, sizeof kMagic) != 0) {
    return Fail(PRECAST_BAD_PACK, "%s: no precast pack (%zu bytes, no magic number at its start)", where, size);
  }
  Cursor c(data + sizeof kMagic, kHeaderBytes - sizeof kMagic);
  const uint32_t version = c.Read<uint32_t>();
  const uint32_t header_bytes = c.Read<uint32_t>();
  const uint64_t file_bytes = c.Read<uint64_t>();
  const uint8_t* build_id = c.Bytes(16);
  const uint64_t metadata_offset = c.Read<uint64_t>();
  const uint64_t stored = c.Read<uint64_t>();
  const uint64_t raw = c.Read<uint64_t>();
  const uint32_t metadata_crc = c.Read<uint32_t>();
  const uint32_t header_crc = c.Read<uint32_t>();
  if (Crc32(data, kHeaderBytes - 4) != header_crc) {
    return Fail(PRECAST_BAD_PACK, "%s: the pack is damaged: its header fails its checksum", where);
  }
  if (version != kFormatVersion) {
    return Fail(PRECAST_VERSION_MISMATCH,
                "%s: the pack has format version %u, this runtime reads version %u; build both with one precast", where,
                version, kFormatVersion);
  }
  if (header_bytes != kHeaderBytes || metadata_offset != kHeaderBytes || file_bytes != size || stored > size ||
      metadata_offset + stored > size || raw > kMaxMetadata || (raw > kAnyMetadata && raw / kMaxRatio > stored)) {
    return Fail(PRECAST_BAD_PACK, "%s: the pack is damaged or cut short: its header speaks of %llu bytes, it has %zu",
                where, static_cast<unsigned long long>(file_bytes), size);
  }
  if (Crc32(data + metadata_offset, stored) != metadata_crc) {
    return Fail(PRECAST_BAD_PACK, "%s: the pack is damaged: its metadata fails its checksum", where);
  }
  std::unique_ptr<Pack> pack(new (std::nothrow) Pack);
  if (pack == nullptr) return Fail(PRECAST_OUT_OF_MEMORY, "no memory for a pack");
  pack->data = data;
  pack->size = size;
  memcpy(pack->build_id.data(), build_id, pack->build_id.size());
  pack->metadata_stored = stored;
  pack->metadata_raw = raw;
  if (ZSTD_getFrameContentSize(data + metadata_offset, stored) != raw) {
    return Fail(PRECAST_BAD_PACK, "%s: the pack is damaged: its metadata has another size than its header says", where);
  }
  std::vector<uint8_t> metadata(raw);
  Status status = Inflate(data + metadata_offset, stored, {}, &metadata);
  if (status != PRECAST_OK) return status;
  status = ParseMetadata(std::move(metadata), metadata_offset + stored, size, where, pack.get());
  if (status == PRECAST_OK) *out = std::move(pack);
  return status;
}

Status Decompress(const Pack& pack, const CodeObject& object, std::vector<uint8_t>* raw) {
  const CodeObject* chain[kMaxBases + 1];
  size_t count = 0;
  for (const CodeObject* o = &object;; o = &pack.objects[o->base]) {
    if (count > kMaxBases) return Fail(PRECAST_BAD_PACK, "the pack is damaged: a code object has too many bases");
    chain[count++] = o;
    if (o->base == kNone) break;
  }
  std::vector<uint8_t> prefix;
  while (count > 0) {
    const CodeObject& o = *chain[--count];
    if (Crc32(pack.data + o.offset, o.stored_bytes) != o.crc) {
      return Fail(PRECAST_BAD_PACK, "the pack is damaged: code object %s fails its checksum",
                  Hex(o.sha256.data(), 8).c_str());
    }
    // A damaged size must not make us ask for memory that the frame can't fill.
    if (ZSTD_getFrameContentSize(pack.data + o.offset, o.stored_bytes) != o.raw_bytes) {
      return Fail(PRECAST_BAD_PACK, "the pack is damaged: code object %s has another size than its record says",
                  Hex(o.sha256.data(), 8).c_str());
    }
    raw->assign(o.raw_bytes, 0);
    const Status status = Inflate(pack.data + o.offset, o.stored_bytes, prefix, raw);
    if (status != PRECAST_OK || count == 0) return status;
    prefix.swap(*raw);
  }
  return PRECAST_OK;
}

bool BuildIdHolds(const Pack& pack) {
  std::vector<uint8_t> named = pack.metadata;
  for (const CodeObject& o : pack.objects) named.insert(named.end(), o.sha256.begin(), o.sha256.end());
  const std::array<uint8_t, 32> digest = Sha256(named.data(), named.size());
  return memcmp(digest.data(), pack.build_id.data(), pack.build_id.size()) == 0;
}

Status VerifyObjects(const Pack& pack, const char* where) {
  if (!BuildIdHolds(pack)) {
    return Fail(PRECAST_BAD_PACK, "%s: the pack is damaged: its build id is not that of its metadata", where);
  }
  std::vector<uint8_t> raw;
  for (const CodeObject& object : pack.objects) {
    const Status status = Decompress(pack, object, &raw);
    if (status != PRECAST_OK) return status;
    if (Sha256(raw.data(), raw.size()) != object.sha256) {
      return Fail(PRECAST_BAD_PACK, "%s: the pack is damaged: code object %s has another digest", where,
                  Hex(object.sha256.data(), 8).c_str());
    }
  }
  return PRECAST_OK;
}

}  // namespace precast
