// Package figures derives figures from runs timed by internal/measure/loop, for any engine:
// figures of the whole model with confidence intervals for repeated runs, measurement quality,
// agreement of passes and layers, and the slowest layers.
package figures
