// Package mltk writes profiles in the layouts of the Silicon Labs MLTK profiler:
// its text, its JSON, its two CSV tables and its pair of report files, with the
// same labels, keys, order and number formatting.
//
// What is shown follows that profiler too, where opmeter's own formats differ:
// operations and multiply-accumulates by its convention, accelerator cycles of
// the maker's simulator, the time of a layer as the longer of accelerator and
// processor, and "unsupported" for every layer whose kernel leaves a message,
// even where it is accelerated after all. Columns that are zero for all layers
// are left out. A figure that is not known is None in text, null in JSON and
// empty in CSV; that profiler shows 0.
//
// Names of keys and labels, their order and the formatting of numbers are facts of
// its public source and documents (https://github.com/SiliconLabs/mltk).
package mltk
