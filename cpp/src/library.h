// A library in memory: its packs, and what each device has loaded of them.
#ifndef PRECAST_SRC_LIBRARY_H_
#define PRECAST_SRC_LIBRARY_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver.h"
#include "pack.h"
#include "record.h"

namespace precast {

// What the generated file of a library says. All pointers are to constants of that file.
struct LibrarySpec {
  const char* family;
  const uint8_t* pack_begin;  // the pack inside the library, or nullptr
  const uint8_t* pack_end;
  const char* const* pack_files;  // packs beside the library: file names, then nullptr; or nullptr
  const char* const* build_ids;   // their expected build ids in hex
  const void* anchor;             // an address inside the library, to find its folder by
};

// One target of one pack that a device can run.
struct Runnable {
  uint32_t pack;
  uint32_t target;
  uint32_t device = kNone;  // its index in the pack's devices
};

struct DeviceState {
  Driver* driver = nullptr;
  int ordinal = 0;
  DeviceFacts facts;
  std::vector<Runnable> runnable;                                // best first
  std::mutex mutex;                                              // guards loading
  std::vector<std::unique_ptr<std::atomic<void*>[]>> functions;  // of each pack's variants
  std::vector<std::vector<void*>> modules;                       // of each pack's code objects
  std::atomic<void*> pool{nullptr};
};

constexpr int kMaxDevices = 64;

class Library {
 public:
  explicit Library(const LibrarySpec& spec) : spec_(spec) {}
  ~Library();

  // A library made of one pack file or of a pack's bytes.
  static Status OpenFile(const char* path, std::unique_ptr<Library>* out);
  static Status OpenBytes(std::vector<uint8_t> bytes, const char* where, std::unique_ptr<Library>* out);

  // Parses the packs at the first call; afterwards one atomic load.
  Status Ready();

  const std::vector<std::unique_ptr<Pack>>& packs() const { return packs_; }
  const Pack& first() const { return *packs_[0]; }
  const char* where() const { return where_.c_str(); }
  bool frozen() const { return frozen_; }
  Recorder* recorder() { return recorder_.get(); }

  // The text of `make`, made at the first call; it stays as long as the library.
  const char* Description(std::string (*make)(const Library&));

  // The device's state, made at the first call.
  Status GetDevice(int device_type, int ordinal, DeviceState** state);

  // Targets of all packs that a GPU of this architecture can run, best first. `device` is the GPU's name, or empty.
  std::vector<Runnable> RunnableOn(const std::string& arch, int capability, const std::string& device) const;

  // Names of all targets, for messages.
  std::string TargetNames() const;

  // A variant's function on a device; loads it at the first call. `stream` tells whether loading is allowed.
  Status GetFunction(DeviceState* device, uint32_t pack, const OperatorTarget& target, uint32_t variant, void* stream,
                     void** function);
  Status GetPool(DeviceState* device, void** pool);

  Status Release();

 private:
  Status LoadPacks();
  Status LoadBeside();
  Status AddPack(const uint8_t* data, size_t size, const char* where);
  Status LoadFunction(DeviceState* device, uint32_t pack, const Variant& variant, std::atomic<void*>* slot);

  LibrarySpec spec_{};
  std::string where_;
  std::mutex mutex_;
  std::atomic<bool> ready_{false};
  Status failed_ = PRECAST_OK;
  std::string failure_;
  std::string description_;
  bool frozen_ = false;
  std::unique_ptr<Recorder> recorder_;
  std::vector<std::vector<uint8_t>> bytes_;  // of packs that are not inside the library
  std::vector<std::unique_ptr<Pack>> packs_;
  std::atomic<DeviceState*> devices_[2][kMaxDevices] = {};
};

// The whole of a file, or PRECAST_NO_PACK.
Status ReadFile(const char* path, std::vector<uint8_t>* bytes);

}  // namespace precast

#endif  // PRECAST_SRC_LIBRARY_H_
