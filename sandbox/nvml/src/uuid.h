/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Deterministic UUIDs: version 5, from the SHA-1 of a text, as the driver derives MIG UUIDs.
 */
#ifndef UUID_H
#define UUID_H

/* "PREFIX-xxxxxxxx-xxxx-5xxx-xxxx-xxxxxxxxxxxx" into text (48 bytes) for a printf-style name. */
void uuid_from_name(char text[48], const char *prefix, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
