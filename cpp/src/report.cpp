#include "report.h"

namespace precast {
namespace {

const char* StatusText(SpecializationStatus status) {
  static constexpr const char* kNames[] = {"built", "excluded", "failed", "not built"};
  return kNames[static_cast<size_t>(status)];
}

const char* KindText(ArgumentKind kind) {
  static constexpr const char* kNames[] = {"tensor", "int", "float", "bool", "choice"};
  return kNames[static_cast<size_t>(kind)];
}

const char* CodeText(CodeKind kind) {
  static constexpr const char* kNames[] = {"cubin", "hsaco", "ptx"};
  return kNames[static_cast<size_t>(kind)];
}

void WriteTexts(const std::vector<std::string>& texts, Json* json) {
  json->BeginArray();
  for (const std::string& text : texts) json->String(text);
  json->EndArray();
}

void WriteArgument(const Operator& op, const Argument& a, Json* json) {
  json->BeginObject();
  json->Key("name").String(a.name);
  json->Key("kind").String(KindText(a.kind));
  json->Key("optional").Bool(a.optional);
  if (a.kind == ArgumentKind::kTensor) {
    json->Key("output").Bool(a.output);
    json->Key("derivable").Bool(!a.shape.empty());
    json->Key("rank").Int(a.rank);
    json->Key("shape").String(a.shape_text);
    json->Key("dtypes").BeginArray();
    if (a.type_variable == kNone) {
      json->String(DtypeName(a.fixed_dtype));
    } else {
      for (const std::string& name : op.types[a.type_variable].names) json->String(name);
    }
    json->EndArray();
    json->Key("type");
    if (a.type_variable == kNone) {
      json->Null();
    } else {
      json->String(op.types[a.type_variable].name);
    }
  } else if (a.optional) {
    json->Key("default");
    if (a.kind == ArgumentKind::kFloat) {
      json->Number(a.default_float);
    } else {
      json->Int(a.default_int);
    }
  }
  if (a.kind == ArgumentKind::kChoice) {
    json->Key("labels");
    WriteTexts(a.labels, json);
  }
  json->EndObject();
}

std::string SpecializationName(const Operator& op, size_t specialization) {
  Json json;
  std::string name;
  size_t rest = specialization;
  std::vector<std::string> parts;
  for (size_t i = op.features.size(); i-- > 0;) {
    const Feature& f = op.features[i];
    parts.push_back(f.name + "=" + f.labels[rest % f.values.size()]);
    rest /= f.values.size();
  }
  for (size_t i = op.types.size(); i-- > 0;) {
    const TypeVariable& t = op.types[i];
    parts.push_back(t.name + "=" + t.names[rest % t.dtypes.size()]);
    rest /= t.dtypes.size();
  }
  for (size_t i = parts.size(); i-- > 0;) name += (name.empty() ? "" : " ") + parts[i];
  return name;
}

void WriteVariant(const Pack& pack, const Variant& v, Json* json) {
  json->BeginObject();
  json->Key("kernel").String(v.kernel);
  json->Key("function").String(v.function);
  json->Key("class").String(v.class_name);
  json->Key("object").Int(v.object);
  json->Key("code_bytes").Int(pack.objects[v.object].raw_bytes);
  json->Key("threads").Int(v.threads);
  json->Key("shared_bytes").Int(v.shared_bytes);
  json->Key("cluster").Int(v.cluster);
  json->Key("cooperative").Bool((v.flags & kCooperative) != 0);
  json->Key("dependent_launch").Bool((v.flags & kDependentLaunch) != 0);
  json->Key("global_scratch_bytes").Int(v.global_scratch_bytes);
  json->Key("profile_scratch_bytes").Int(v.profile_scratch_bytes);
  json->Key("registers").Int(v.registers);
  json->Key("spills").Int(v.spills);
  json->Key("params").Int(static_cast<int64_t>(v.params.size()));
  json->Key("tensor_maps").Int(static_cast<int64_t>(v.tensor_maps.size()));
  json->EndObject();
}

void WriteCandidate(const Candidate& c, Json* json) {
  json->BeginObject();
  json->Key("plan").String(c.plan);
  json->Key("config").String(c.config);
  json->Key("conditional").Bool(c.condition != kNone);
  json->Key("source").String(c.source);
  json->Key("workspaces").BeginArray();
  for (const Workspace& w : c.workspaces) json->String(w.name);
  json->EndArray();
  json->Key("launches").BeginArray();
  for (const Launch& launch : c.launches) {
    json->BeginObject().Key("variants").BeginArray();
    for (const LaunchVariant& v : launch.variants) {
      json->BeginObject();
      json->Key("variant").Int(v.variant);
      json->Key("class_mask").String(Format("%llx", static_cast<unsigned long long>(v.class_mask)));
      json->EndObject();
    }
    json->EndArray().EndObject();
  }
  json->EndArray();
  json->EndObject();
}

// Regret on held-out problems, or null.
void WriteRegret(const char* name, float regret, Json* json) {
  json->Key(name);
  if (regret < 0) {
    json->Null();
  } else {
    json->Number(static_cast<double>(regret));
  }
}

// A key field's name, or, of what is derived, the expression's number.
std::string FieldName(const Operator& op, uint32_t expression) {
  for (const KeyField& k : op.key) {
    if (k.expression == expression) return k.name;
  }
  return Format("expression %u", expression);
}

void WriteTable(const Pack& pack, const Operator& op, const Table& t, Json* json) {
  json->BeginObject();
  json->Key("device");
  if (t.device == kNone) {
    json->Null();
  } else {
    json->String(pack.devices[t.device]);
  }
  json->Key("rung").String(RungName(t.rung));
  WriteRegret("mean_regret", t.mean_regret, json);
  WriteRegret("worst_regret", t.worst_regret, json);
  json->Key("measured").Int(op.key.empty() ? 0 : static_cast<int64_t>(t.measured.size() / op.key.size()));
  json->Key("nodes").BeginArray();
  for (const Node& n : t.nodes) {
    json->BeginObject();
    if (n.field == kNone) {
      json->Key("leaf").Int(n.left);
    } else {
      json->Key("field").String(FieldName(op, t.fields[n.field]));
      json->Key("threshold").Int(n.threshold);
      json->Key("left").Int(n.left);
      json->Key("right").Int(n.right);
    }
    json->EndObject();
  }
  json->EndArray();
  json->Key("leaves").BeginArray();
  for (const Leaf& leaf : t.leaves) {
    json->BeginObject().Key("tuned").Int(leaf.tuned);
    json->Key("choices").BeginArray();
    for (const uint32_t c : leaf.choices) json->Int(c);
    json->EndArray().EndObject();
  }
  json->EndArray();
  json->EndObject();
}

void WriteTarget(const Pack& pack, const Operator& op, const OperatorTarget& t, Json* json) {
  json->BeginObject();
  json->Key("target").String(pack.targets[t.target]);
  json->Key("specializations").BeginArray();
  for (size_t i = 0; i < t.specializations.size(); ++i) {
    const Specialization& s = t.specializations[i];
    json->BeginObject();
    json->Key("name").String(SpecializationName(op, i));
    json->Key("status").String(StatusText(s.status));
    json->Key("reason").String(s.reason);
    json->Key("candidates").BeginArray();
    for (uint32_t c : s.candidates) json->Int(c);
    json->EndArray();
    json->Key("tables").BeginArray();
    for (const Table& table : s.tables) WriteTable(pack, op, table, json);
    json->EndArray();
    json->EndObject();
  }
  json->EndArray();
  json->Key("candidates").BeginArray();
  for (const Candidate& c : t.candidates) WriteCandidate(c, json);
  json->EndArray();
  json->Key("variants").BeginArray();
  for (const Variant& v : t.variants) WriteVariant(pack, v, json);
  json->EndArray();
  json->EndObject();
}

void WriteOperatorHead(const Operator& op, Json* json) {
  json->Key("name").String(op.name);
  json->Key("doc").String(op.doc);
  json->Key("arguments").BeginArray();
  for (const Argument& a : op.arguments) WriteArgument(op, a, json);
  json->EndArray();
  json->Key("features").BeginArray();
  for (const Feature& f : op.features) {
    json->BeginObject().Key("name").String(f.name).Key("values");
    WriteTexts(f.labels, json);
    json->EndObject();
  }
  json->EndArray();
  json->Key("key").BeginArray();
  for (const KeyField& k : op.key) json->String(k.name);
  json->EndArray();
}

}  // namespace

const char* RungName(Rung rung) {
  static constexpr const char* kNames[] = {"measured", "nearest problem", "other device", "sibling target",
                                           "static default"};
  return kNames[static_cast<size_t>(rung)];
}

void WriteSpecializationValues(const Operator& op, size_t specialization, Json* json) {
  size_t radix = 1;
  for (const TypeVariable& t : op.types) radix *= t.dtypes.size();
  for (const Feature& f : op.features) radix *= f.values.size();
  json->BeginObject();
  for (const TypeVariable& t : op.types) {
    radix /= t.dtypes.size();
    json->Key(t.name.c_str()).String(t.names[specialization / radix % t.dtypes.size()]);
  }
  for (const Feature& f : op.features) {
    radix /= f.values.size();
    json->Key(f.name.c_str()).String(f.labels[specialization / radix % f.values.size()]);
  }
  json->EndObject();
}

std::string DescribeLibrary(const Library& library) {
  const Pack& first = library.first();
  Json json;
  json.BeginObject();
  json.Key("family").String(first.family);
  json.Key("precast_version").String(first.precast_version);
  json.Key("triton_version").String(first.triton_version);
  json.Key("build_ids").BeginArray();
  for (const auto& pack : library.packs()) json.String(Hex(pack->build_id.data(), pack->build_id.size()));
  json.EndArray();
  json.Key("targets").BeginArray();
  for (const auto& pack : library.packs()) {
    for (const std::string& target : pack->targets) json.String(target);
  }
  json.EndArray();
  json.Key("operators").BeginArray();
  for (const Operator& op : first.operators) {
    json.BeginObject();
    WriteOperatorHead(op, &json);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Take();
}

std::string ExplainChoice(const Library& library, const Call& call, const Choice& choice, const std::string& device) {
  const Pack& pack = *library.packs()[choice.pack];
  Json json;
  json.BeginObject();
  json.Key("operator").String(choice.op->name);
  json.Key("device").String(device);
  json.Key("target").String(pack.targets[choice.target->target]);
  json.Key("build_id").String(Hex(pack.build_id.data(), pack.build_id.size()));
  json.Key("specialization");
  WriteSpecializationValues(*choice.op, choice.specialization, &json);
  json.Key("key").BeginObject();
  for (size_t i = 0; i < choice.op->key.size(); ++i) json.Key(choice.op->key[i].name.c_str()).Int(choice.key[i]);
  json.EndObject();
  json.Key("plan").String(choice.candidate->plan);
  json.Key("config").String(choice.candidate->config);
  json.Key("rung").String(choice.table == nullptr ? "named by the caller" : RungName(RungOf(choice)));
  WriteRegret("mean_regret", choice.tuned && choice.table ? choice.table->mean_regret : -1, &json);
  WriteRegret("worst_regret", choice.tuned && choice.table ? choice.table->worst_regret : -1, &json);
  json.Key("launches").BeginArray();
  for (size_t i = 0; i < choice.candidate->launches.size(); ++i) {
    const Variant& v = choice.target->variants[choice.variants[i]];
    json.BeginObject();
    json.Key("kernel").String(v.kernel);
    json.Key("class").String(v.class_name);
    json.Key("grid").BeginArray();
    for (const uint32_t expression : choice.candidate->launches[i].grid) {
      int64_t size = 0;
      if (Evaluate(call.op->expressions[expression], call.slots, &size) == Evaluation::kOk) {
        json.Int(size);
      } else {
        json.Null();
      }
    }
    json.EndArray();
    json.Key("threads").Int(v.threads);
    json.Key("shared_bytes").Int(v.shared_bytes);
    json.Key("registers").Int(v.registers);
    json.Key("spills").Int(v.spills);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Take();
}

std::string InspectPack(const Pack& pack) {
  Json json;
  json.BeginObject();
  json.Key("format_version").Int(kFormatVersion);
  json.Key("build_id").String(Hex(pack.build_id.data(), pack.build_id.size()));
  json.Key("family").String(pack.family);
  json.Key("precast_version").String(pack.precast_version);
  json.Key("triton_version").String(pack.triton_version);
  json.Key("bytes").Int(static_cast<int64_t>(pack.size));
  json.Key("metadata_bytes").Int(static_cast<int64_t>(pack.metadata_stored));
  json.Key("metadata_raw_bytes").Int(static_cast<int64_t>(pack.metadata_raw));
  json.Key("targets");
  WriteTexts(pack.targets, &json);
  json.Key("devices");
  WriteTexts(pack.devices, &json);
  json.Key("notes");
  WriteTexts(pack.notes, &json);
  json.Key("objects").BeginArray();
  for (const CodeObject& o : pack.objects) {
    json.BeginObject();
    json.Key("sha256").String(Hex(o.sha256.data(), o.sha256.size()));
    json.Key("kind").String(CodeText(o.kind));
    json.Key("raw").Int(o.raw_bytes);
    json.Key("stored").Int(o.stored_bytes);
    json.Key("base");
    if (o.base == kNone) {
      json.Null();
    } else {
      json.Int(o.base);
    }
    json.EndObject();
  }
  json.EndArray();
  json.Key("operators").BeginArray();
  for (const Operator& op : pack.operators) {
    json.BeginObject();
    WriteOperatorHead(op, &json);
    json.Key("targets").BeginArray();
    for (const OperatorTarget& t : op.targets) WriteTarget(pack, op, t, &json);
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Take();
}

}  // namespace precast
