// Package compress predicts the effect of pruning and quantisation on a model: [Job.Speed] measures
// the time of each change, [Job.Loss] its cost in accuracy, [Job.Plan] chooses a change for each
// layer, and [Job.Apply] writes the changed model. A [study.Study] keeps the results.
package compress
