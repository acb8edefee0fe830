// Package figures makes figures of runs that internal/measure/loop timed, whoever ran them: of the
// whole model, with intervals that hold for repeated runs; whether they can be relied upon;
// how passes and layers agree; what takes most time.
package figures
