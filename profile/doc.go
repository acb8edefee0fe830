// Package profile is the result of profiling a model: what was counted,
// measured, simulated, estimated or imported, for the whole and per layer, with
// everything needed to judge and to repeat it.
//
// Every source of figures yields a [Profile] and every report reads one. Rules
// that hold throughout:
//
//   - A figure that is not known is absent (a nil pointer, nil slice or empty
//     string, left out of JSON). It is never zero: zero means "known to be none".
//   - Keys of JSON end in the base unit: _s seconds, _bytes, _hz, _j joules,
//     _cycles. Figures without such an ending are counts or, where the field says
//     so, fractions of one.
//   - Every measured or estimated figure is a [Metric] with its kind and spread.
//   - What became of a layer is a [State], why is a [Cause] with a code, where it runs
//     a [Placement]. Texts beside them are for people; nothing reads them again.
//   - What a figure is called, its unit and whether it adds up stands once, in the
//     table of [Quantities]. A profile brings descriptions of figures that the table
//     lacks ([Profile.Quantities]); [Layer.Figure] and [Totals.Figure] find both.
//   - Keys may be added within schema version 1 and are never renamed or removed.
//     Readers ignore keys that they do not know.
//
// A [Builder] makes a profile of events ([Event]) and has a valid one at any moment; a
// [Journal] keeps the events on disk meanwhile. [Profile.Select] and [Layers] gather
// and add up the layers of one profile; the package profile/align pairs those of two.
//
// JSON text is read and written by [Decode] and [Profile.Encode]; [Read] and
// [Write] handle saved profile files, compressed and checked, and [ReadHead] what a
// list shows of one. The JSON Schema is docs/profile.schema.json, everything else
// docs/reference/profile.md. Of the project the package imports profile/timeline and
// internal/base/jsonx, atomicfile, columnar and stats; it measures nothing and shows
// nothing.
package profile
