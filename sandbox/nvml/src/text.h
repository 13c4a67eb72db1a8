/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Text of bounded length, added to piece by piece.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

struct text {
    char *data;
    size_t size, length;
};

/* Add formatted text; a piece that does not fit ends the text and makes length equal to size. */
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether everything fitted. */
#define text_is_whole(text) ((text)->length < (text)->size)

#endif
