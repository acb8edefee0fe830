// Package host is the source of figures that are measured on this computer: it
// feeds and runs the engine under internal/measure/loop and reports what it sees as
// events, on the description that all sources share.
//
// The way is: inputs, plan, description, session, first run, measuring, findings.
// Each step reads the ones before and changes none of them.
package host
