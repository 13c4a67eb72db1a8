/* Copyright: (c) 2026, gpufleet.dra contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Text of bounded length.
 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>

void text_add(struct text *text, const char *format, ...)
{
    if (!text_is_whole(text))
        return;
    va_list arguments;
    va_start(arguments, format);
    int count = vsnprintf(text->data + text->length, text->size - text->length, format, arguments);
    va_end(arguments);
    if (count < 0 || (size_t)count >= text->size - text->length)
        text->length = text->size;
    else
        text->length += (size_t)count;
}
