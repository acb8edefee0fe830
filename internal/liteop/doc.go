// Package liteop is the parent of the rooms with TFLite's operators, a field each; it
// holds the tests that go across fields.
package liteop
