// CRC-32 (as in zlib) guards what is stored; SHA-256 (FIPS 180-4) names code objects by content.
#ifndef PRECAST_SRC_CHECKSUM_H_
#define PRECAST_SRC_CHECKSUM_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace precast {

uint32_t Crc32(const uint8_t* data, size_t size);

std::array<uint8_t, 32> Sha256(const uint8_t* data, size_t size);

}  // namespace precast

#endif  // PRECAST_SRC_CHECKSUM_H_
