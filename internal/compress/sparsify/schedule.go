package sparsify

import "math"

// Epochs is Sparsify's distribution of the epochs of training.
type Epochs struct {
	Start, PruningStart, PruningEnd, End float64
	// Update is the number of epochs between two steps of pruning: forty in all.
	Update float64
}

// NewEpochs distributes epochs for a training that took so many; below 1 counts as 100.
func NewEpochs(training int) Epochs {
	if training < 1 {
		training = 100
	}
	const stabilise = 1
	prune, tune := float64(training/3), float64(training/4)
	return Epochs{PruningStart: stabilise, PruningEnd: stabilise + prune, End: stabilise + prune + tune, Update: prune / 40}
}

// Rates is Sparsify's schedule of learning rates: a constant one, then steps from the start of
// fine-tuning. initial is the training's initial rate; a nil final rate gives no steps.
func Rates(e Epochs, initial float64, final *float64) []Modifier {
	constant := initial
	if final != nil && *final != 0 {
		constant = (initial + *final) / 2
	}
	out := []Modifier{{Kind: SetRate, Start: e.Start, End: -1, Rate: constant}}
	if final == nil || *final <= 0 || initial <= 0 {
		return out
	}
	const gamma = 0.25
	start := constant * gamma
	steps := math.Log(0.1**final/start) / math.Log(gamma)
	size := math.Floor((e.End - e.PruningEnd - 1) / steps)
	if steps <= 0 || size < 1 {
		size = 1 // Sparsify writes sizes below 1 here, which no trainer takes
	}
	return append(out, Modifier{Kind: LearningRate, Start: e.PruningEnd, End: -1, Rate: start, Class: "StepLR", StepSize: size, Gamma: gamma})
}
