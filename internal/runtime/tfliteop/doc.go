// Package tfliteop is the parent of the rooms with TFLite's operators, a field each; it
// holds the tests that go across fields.
package tfliteop
