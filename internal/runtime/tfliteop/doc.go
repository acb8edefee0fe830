// Package tfliteop is the parent of the packages with TFLite's operators, one per kind of
// operator. It contains the tests that span several of them.
package tfliteop
