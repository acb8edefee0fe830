// Package count determines the work of operators: operations, multiply-accumulates, parameters,
// bytes. Everything follows from types, shapes and attributes; nothing is run or timed.
//
// The conventions and the formula of every operator are in docs/counting.md, which is generated
// from the rules of this package (go generate). An operator without a rule is unknown and never
// zero.
//
// The package imports internal/model/graph, internal/model/tensor and the types of profile only.
package count

//go:generate go run ./gen
