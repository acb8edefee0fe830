// Package record reads the profiles and traces of other tools: [Import] makes a [profile.Profile]
// of each run, [Formats] lists what it reads. With the recorded model, operators get the shapes,
// work and weights that the record lacks.
package record
