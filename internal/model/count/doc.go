// Package count determines the work of operators: operations, multiply-accumulates, parameters,
// bytes. Everything follows from types, shapes and attributes; nothing is run or timed.
//
// The conventions are in docs/explanation/counting.md. The formula of every operator is in
// docs/reference/counting.md, which go generate makes from the rules of this package. An
// operator without a rule is unknown, never zero.
//
// The package imports internal/model/graph and internal/model/tensor only.
package count

//go:generate go run ./gen
