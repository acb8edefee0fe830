package opmeter_test

import (
	"strings"
	"testing"

	"github.com/opmeter/opmeter"
)

// A batch that the state of an LSTM does not fit leaves most of the model out: neither a sweep nor
// a timer gives the time of the rest for that of the model.
func TestUnrunBatch(t *testing.T) {
	t.Parallel()
	m, err := opmeter.Open("examples/lstm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	points, err := opmeter.Sweep(t.Context(), m, opmeter.SweepOptions{Options: opmeter.Options{Runs: 3}, Batches: []int{1, 8}, Rounds: 1})
	if err != nil || len(points) != 2 {
		t.Fatalf("%d points, %v", len(points), err)
	}
	if points[0].Err != nil || points[0].Latency == nil {
		t.Errorf("the batch of the file: %v", points[0].Err)
	}
	if err := points[1].Err; err == nil || points[1].Throughput != nil || !strings.Contains(err.Error(), "1 of 4 layers did not run: no latency for the model; the first is #0 UNIDIRECTIONAL_SEQUENCE_LSTM") {
		t.Errorf("a batch of 8: %v, %+v", err, points[1].Throughput)
	}
	for batch, fails := range map[int]bool{1: false, 8: true} {
		timer, err := opmeter.NewTimer(t.Context(), m, opmeter.Options{Inputs: opmeter.Inputs{Batch: batch}})
		if (err != nil) != fails || err != nil && !strings.Contains(err.Error(), "1 of 4 layers do not run") {
			t.Errorf("timer, batch %d: %v", batch, err)
		}
		if err == nil {
			timer.Close()
		}
	}
}
