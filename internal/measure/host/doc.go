// Package host is the source of measurements on this computer: it runs the engine under
// internal/measure/loop and reports events, starting from the description that all sources share.
//
// The order is: inputs, plan, description, session, first run, measurement, findings. Each step
// reads the results of earlier ones and changes none of them.
package host
