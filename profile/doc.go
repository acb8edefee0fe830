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
//   - Keys may be added within schema version 1 and are never renamed or removed.
//     Readers ignore keys that they do not know.
//
// JSON text is read and written by [Decode] and [Profile.Encode]; [Read] and
// [Write] handle saved profile files, compressed and checked. The JSON Schema is
// docs/profile.schema.json. The package imports only internal/jsonx and
// internal/atomicfile; it measures nothing and shows nothing.
package profile
