// Package host profiles a model on this computer: it feeds and runs the engine
// under internal/measure, counts the work of each operator and puts both into a
// profile.
package host
