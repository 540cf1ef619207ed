#include "library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "log.h"

namespace precast {
namespace {

// How well a GPU runs code of a target: lower is better, negative is not at all.
int Fit(const std::string& target, const std::string& arch, int capability) {
  if (target == arch) return 0;
  if (capability == 0) return -1;
  if (target.compare(0, 8, "compute_") == 0) {
    const int code = atoi(target.c_str() + 8);
    return code <= capability ? 1000 + capability - code : -1;  // PTX, compiled by the driver
  }
  if (target.compare(0, 3, "sm_") != 0) return -1;
  const int code = atoi(target.c_str() + 3);
  // From 9.0 on Triton uses architecture-specific features, which no other architecture runs.
  const bool portable = code < 90 && code / 10 == capability / 10 && code < capability;
  return portable ? capability - code : -1;
}

}  // namespace

Status ReadFile(const char* path, std::vector<uint8_t>* bytes) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat facts{};
  if (file < 0 || fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    const int error = errno;
    if (file >= 0) close(file);
    return Fail(PRECAST_NO_PACK, "%s can't be read: %s", path, file < 0 ? strerror(error) : "not a file");
  }
  bytes->resize(static_cast<size_t>(facts.st_size));
  size_t done = 0;
  while (done < bytes->size()) {
    const ssize_t got = read(file, bytes->data() + done, bytes->size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  close(file);
  if (done != bytes->size()) return Fail(PRECAST_NO_PACK, "%s can't be read to its end", path);
  return PRECAST_OK;
}

Library::~Library() { Release(); }

Status Library::OpenFile(const char* path, std::unique_ptr<Library>* out) {
  std::vector<uint8_t> bytes;
  const Status status = ReadFile(path, &bytes);
  return status == PRECAST_OK ? OpenBytes(std::move(bytes), path, out) : status;
}

Status Library::OpenBytes(std::vector<uint8_t> bytes, const char* where, std::unique_ptr<Library>* out) {
  std::unique_ptr<Library> library(new (std::nothrow) Library(LibrarySpec{}));
  if (library == nullptr) return Fail(PRECAST_OUT_OF_MEMORY, "no memory for a library");
  library->bytes_.push_back(std::move(bytes));
  library->where_ = where;
  const std::vector<uint8_t>& own = library->bytes_.back();
  Status status = library->AddPack(own.data(), own.size(), where);
  if (status == PRECAST_OK) status = library->Ready();
  if (status == PRECAST_OK) *out = std::move(library);
  return status;
}

Status Library::AddPack(const uint8_t* data, size_t size, const char* where) {
  std::unique_ptr<Pack> pack;
  const Status status = ParsePack(data, size, where, &pack);
  if (status == PRECAST_OK) packs_.push_back(std::move(pack));
  return status;
}

Status Library::Ready() {
  if (ready_.load(std::memory_order_acquire)) return PRECAST_OK;
  std::lock_guard<std::mutex> lock(mutex_);
  if (ready_.load(std::memory_order_relaxed)) return PRECAST_OK;
  if (failed_ != PRECAST_OK) return Fail(failed_, "%s", failure_.c_str());
  Status status = packs_.empty() ? LoadPacks() : PRECAST_OK;
  if (status != PRECAST_OK) {
    packs_.clear();
    bytes_.clear();
    if (status != PRECAST_NO_PACK && status != PRECAST_OUT_OF_MEMORY) {
      failed_ = status;
      failure_ = LastError();
    }
    return status;
  }
  frozen_ = EnvironmentFlag("PRECAST_FROZEN");
  recorder_ = Recorder::FromEnvironment(first().family);
  Log(LogLevel::kInfo, "library %s, build %s, targets %s", first().family.c_str(),
      Hex(first().build_id.data(), first().build_id.size()).c_str(), TargetNames().c_str());
  ready_.store(true, std::memory_order_release);
  return PRECAST_OK;
}

Status Library::LoadPacks() {
  where_ = std::string("lib") + (spec_.family != nullptr ? spec_.family : "?") + ".so";
  if (spec_.pack_begin != nullptr) {
    return AddPack(spec_.pack_begin, static_cast<size_t>(spec_.pack_end - spec_.pack_begin), where_.c_str());
  }
  return LoadBeside();
}

Status Library::LoadBeside() {
  Dl_info info{};
  if (spec_.pack_files == nullptr || dladdr(spec_.anchor, &info) == 0 || info.dli_fname == nullptr) {
    return Fail(PRECAST_INTERNAL, "%s: the library can't find its own folder", where_.c_str());
  }
  std::string folder = info.dli_fname;
  const size_t slash = folder.rfind('/');
  folder = slash == std::string::npos ? "." : folder.substr(0, slash);
  std::string missing;
  for (size_t i = 0; spec_.pack_files[i] != nullptr; ++i) {
    const std::string path = folder + "/" + spec_.pack_files[i];
    if (access(path.c_str(), F_OK) != 0) {
      missing += (missing.empty() ? "" : ", ") + path;
      continue;
    }
    std::vector<uint8_t> bytes;
    Status status = ReadFile(path.c_str(), &bytes);
    if (status != PRECAST_OK) return status;
    bytes_.push_back(std::move(bytes));
    status = AddPack(bytes_.back().data(), bytes_.back().size(), path.c_str());
    if (status != PRECAST_OK) return status;
    const Pack& pack = *packs_.back();
    const std::string id = Hex(pack.build_id.data(), pack.build_id.size());
    if (id != spec_.build_ids[i]) {
      return Fail(PRECAST_VERSION_MISMATCH,
                  "%s has build id %s, but %s was built with %s: install the library and its packs from one build",
                  path.c_str(), id.c_str(), info.dli_fname, spec_.build_ids[i]);
    }
    // Packs of one library share the operators' tables, so the id must be more than a claim.
    if (!BuildIdHolds(pack)) {
      return Fail(PRECAST_BAD_PACK, "%s: the pack is damaged: its build id is not that of its metadata", path.c_str());
    }
  }
  if (packs_.empty()) {
    return Fail(PRECAST_NO_PACK, "%s has no packs beside it: install at least one of %s", info.dli_fname,
                missing.c_str());
  }
  return PRECAST_OK;
}

const char* Library::Description(std::string (*make)(const Library&)) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (description_.empty()) description_ = make(*this);
  return description_.c_str();
}

std::string Library::TargetNames() const {
  std::string names;
  for (const auto& pack : packs_) {
    for (const std::string& name : pack->targets) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

std::vector<Runnable> Library::RunnableOn(const std::string& arch, int capability, const std::string& device) const {
  std::vector<std::pair<int, Runnable>> found;
  for (uint32_t p = 0; p < packs_.size(); ++p) {
    const std::vector<std::string>& devices = packs_[p]->devices;
    const auto at = std::find(devices.begin(), devices.end(), device);
    const uint32_t known = at == devices.end() ? kNone : static_cast<uint32_t>(at - devices.begin());
    for (uint32_t t = 0; t < packs_[p]->targets.size(); ++t) {
      const int fit = Fit(packs_[p]->targets[t], arch, capability);
      if (fit >= 0) found.push_back({fit, {p, t, known}});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Runnable> runnable;
  for (const auto& entry : found) runnable.push_back(entry.second);
  return runnable;
}

Status Library::GetDevice(int device_type, int ordinal, DeviceState** state) {
  if (ordinal < 0 || ordinal >= kMaxDevices) return Fail(PRECAST_INVALID_ARGUMENT, "there is no device %d", ordinal);
  std::atomic<DeviceState*>& slot = devices_[device_type == PRECAST_ROCM ? 1 : 0][ordinal];
  *state = slot.load(std::memory_order_acquire);
  if (*state != nullptr) return PRECAST_OK;
  Driver* driver = nullptr;
  Status status = OpenDriver(device_type, &driver);
  if (status != PRECAST_OK) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  *state = slot.load(std::memory_order_relaxed);
  if (*state != nullptr) return PRECAST_OK;
  if (ordinal >= driver->DeviceCount()) {
    return Fail(PRECAST_INVALID_ARGUMENT, "there is no %s device %d: there are %d", driver->Name(), ordinal,
                driver->DeviceCount());
  }
  std::unique_ptr<DeviceState> made(new (std::nothrow) DeviceState);
  if (made == nullptr) return Fail(PRECAST_OUT_OF_MEMORY, "no memory for a device");
  made->driver = driver;
  made->ordinal = ordinal;
  status = driver->Facts(ordinal, &made->facts);
  if (status != PRECAST_OK) return status;
  made->runnable = RunnableOn(made->facts.arch, made->facts.capability, made->facts.name);
  for (const auto& pack : packs_) {
    made->functions.emplace_back(new std::atomic<void*>[pack->variant_count + 1]());
    made->modules.emplace_back(pack->objects.size(), nullptr);
  }
  Log(LogLevel::kInfo, "device %d: %s (%s)", ordinal, made->facts.name.c_str(), made->facts.arch.c_str());
  *state = made.release();
  slot.store(*state, std::memory_order_release);
  return PRECAST_OK;
}

Status Library::GetFunction(DeviceState* device, uint32_t pack, const OperatorTarget& target, uint32_t variant,
                            void* stream, void** function) {
  std::atomic<void*>& slot = device->functions[pack][target.first_variant + variant];
  *function = slot.load(std::memory_order_acquire);
  if (*function != nullptr) return PRECAST_OK;
  bool capturing = false;
  Status status = device->driver->IsCapturing(stream, &capturing);
  if (status != PRECAST_OK) return status;
  if (capturing) {
    return Fail(PRECAST_NOT_WARM, "kernel %s is not loaded yet and its stream is being captured: call warmup first",
                target.variants[variant].kernel.c_str());
  }
  status = LoadFunction(device, pack, target.variants[variant], &slot);
  *function = slot.load(std::memory_order_acquire);
  return status;
}

Status Library::LoadFunction(DeviceState* device, uint32_t pack, const Variant& variant, std::atomic<void*>* slot) {
  std::lock_guard<std::mutex> lock(device->mutex);
  if (slot->load(std::memory_order_relaxed) != nullptr) return PRECAST_OK;
  void*& module = device->modules[pack][variant.object];
  if (module == nullptr) {
    const CodeObject& object = packs_[pack]->objects[variant.object];
    std::vector<uint8_t> raw;
    Status status = Decompress(*packs_[pack], object, &raw);
    if (status != PRECAST_OK) return status;
    raw.push_back(0);  // PTX must end with a zero
    status = device->driver->Load(raw.data(), &module);
    if (status != PRECAST_OK) return status;
  }
  void* function = nullptr;
  const Status status =
      device->driver->GetFunction(module, variant.function.c_str(), variant.shared_bytes, variant.cluster, &function);
  if (status != PRECAST_OK) return status;
  Log(LogLevel::kDebug, "loaded %s (%s)", variant.kernel.c_str(), variant.class_name.c_str());
  slot->store(function, std::memory_order_release);
  return PRECAST_OK;
}

Status Library::GetPool(DeviceState* device, void** pool) {
  *pool = device->pool.load(std::memory_order_acquire);
  if (*pool != nullptr) return PRECAST_OK;
  std::lock_guard<std::mutex> lock(device->mutex);
  *pool = device->pool.load(std::memory_order_relaxed);
  if (*pool != nullptr) return PRECAST_OK;
  const Status status = device->driver->MakePool(device->ordinal, pool);
  if (status == PRECAST_OK) device->pool.store(*pool, std::memory_order_release);
  return status;
}

Status Library::Release() {
  if (recorder_ != nullptr) recorder_->Flush();
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& devices : devices_) {
    for (auto& slot : devices) {
      DeviceState* device = slot.exchange(nullptr);
      if (device == nullptr) continue;
      void* restore = nullptr;
      if (device->driver->Enter(device->ordinal, &restore) == PRECAST_OK) {
        for (const auto& modules : device->modules) {
          for (void* module : modules) {
            if (module != nullptr) device->driver->Unload(module);
          }
        }
        if (void* pool = device->pool.load()) device->driver->FreePool(pool);
        device->driver->Leave(restore);
      }
      delete device;
    }
  }
  return PRECAST_OK;
}

}  // namespace precast
