// Package traceevent reads the events of the trace-event format of the Chromium project,
// which many tools write: a list of JSON objects, or an object with that list. It knows
// members of events and units of their times, and not what they mean.
//
// Source of the format: "Trace Event Format", the document of the Chromium project.
package traceevent
