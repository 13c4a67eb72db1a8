/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * SHA-1 (RFC 3174) over short texts, and version-5 UUIDs of it (RFC 4122).
 */
#include "uuid.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LENGTH = 183, BLOCK = 64 };    /* three blocks, less the padding */

static uint32_t rotate(uint32_t value, unsigned bits)
{
    return value << bits | value >> (32 - bits);
}

static void sha1_block(uint32_t hash[5], const uint8_t *block)
{
    uint32_t w[80], a = hash[0], b = hash[1], c = hash[2], d = hash[3], e = hash[4];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 ? b ^ c ^ d : i < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
        uint32_t k = i < 20 ? 0x5a827999u : i < 40 ? 0x6ed9eba1u : i < 60 ? 0x8f1bbcdcu : 0xca62c1d6u;
        uint32_t next = rotate(a, 5) + f + e + k + w[i];
        e = d, d = c, c = rotate(b, 30), b = a, a = next;
    }
    hash[0] += a, hash[1] += b, hash[2] += c, hash[3] += d, hash[4] += e;
}

static void sha1(const char *name, size_t length, uint8_t digest[20])
{
    uint32_t hash[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
    uint8_t padded[3 * BLOCK] = {0};
    size_t blocks = (length + 9 + BLOCK - 1) / BLOCK;
    memcpy(padded, name, length);
    padded[length] = 0x80;
    padded[blocks * BLOCK - 2] = (uint8_t)(length * 8 >> 8);
    padded[blocks * BLOCK - 1] = (uint8_t)(length * 8);
    for (size_t i = 0; i < blocks; i++)
        sha1_block(hash, padded + i * BLOCK);
    for (int i = 0; i < 20; i++)
        digest[i] = (uint8_t)(hash[i / 4] >> (24 - 8 * (i % 4)));
}

void uuid_from_name(char text[48], const char *prefix, const char *format, ...)
{
    char name[NAME_MAX_LENGTH + 1];
    uint8_t d[20];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    sha1(name, strlen(name), d);
    d[6] = (uint8_t)((d[6] & 0x0f) | 0x50);
    d[8] = (uint8_t)((d[8] & 0x3f) | 0x80);
    snprintf(text, 48, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", prefix, d[0], d[1], d[2], d[3], d[4],
             d[5], d[6], d[7], d[8], d[9], d[10], d[11], d[12], d[13], d[14], d[15]);
}
