// JSON about packs, libraries and choices.
#ifndef PRECAST_SRC_REPORT_H_
#define PRECAST_SRC_REPORT_H_

#include <string>

#include "dispatch.h"
#include "json.h"
#include "library.h"

namespace precast {

const char* RungName(Rung rung);

// The types and features of a specialization as an object.
void WriteSpecializationValues(const Operator& op, size_t specialization, Json* json);

// What callers need to know of a library: operators, arguments, targets, build ids.
std::string DescribeLibrary(const Library& library);

// What `run` would do.
std::string ExplainChoice(const Library& library, const Call& call, const Choice& choice, const std::string& device);

// Everything in a pack.
std::string InspectPack(const Pack& pack);

}  // namespace precast

#endif  // PRECAST_SRC_REPORT_H_
