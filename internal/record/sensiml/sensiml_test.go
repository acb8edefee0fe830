package sensiml_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/sensiml"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

func bytesOf(t testing.TB, elem ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(material.Path(t, append([]string{"raw", "sensiml"}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFolder: a recording with its model.json has names, and a run for each model.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, from := range map[string][]string{"model.json": {"real", "xg24_2022_two_models_model.json"}, "board.log": {"format", "xg24_two_models.log"}} {
		if err := os.WriteFile(filepath.Join(dir, name), bytesOf(t, from...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ps := records.Read(t, sensiml.Format(), records.Files(t, dir), record.Options{Clocks: map[string]float64{"": 78e6}})
	if len(ps) != 2 || ps[0].Model.Name != "AUDIO_MODEL" || ps[1].Model.Name != "IMU_MODEL" {
		t.Fatalf("%d runs", len(ps))
	}
	if l := ps[1].Layers[0]; l.Name != "100th Percentile AccelerometerZ" || l.Latency == nil || l.CPUCycles.Kind != profile.Imported {
		t.Errorf("%+v", l)
	}
	if l := ps[1].Layers[7]; l.State != profile.Lost || l.CPUCycles != nil {
		t.Errorf("%+v", l)
	}
}

// TestAlone: without a model.json figures are of slots, and something says what to do.
func TestAlone(t *testing.T) {
	t.Parallel()
	ps := records.Read(t, sensiml.Format(), []*record.File{record.Bytes("board.log", bytesOf(t, "format", "roc7_nano33.log"))}, record.Options{})
	if len(ps) != 1 || len(ps[0].Layers) != 8 || ps[0].Layers[0].Name != "slot 0" || ps[0].Layers[0].Latency != nil {
		t.Fatalf("%+v", ps)
	}
	said := ""
	for _, f := range ps[0].Findings {
		said += f.ID + " "
	}
	if !strings.Contains(said, "sensiml.no_pack") || !strings.Contains(said, "sensiml.clock") {
		t.Error(said)
	}
	if _, err := records.Try(t, sensiml.Format(), []*record.File{record.Bytes("model.json", bytesOf(t, "format", "roc7_model.json"))}, record.Options{}); err == nil || !strings.Contains(err.Error(), "model.json") {
		t.Errorf("a model.json alone: %v", err)
	}
}

// FuzzRead: whatever a recording holds, runs are valid profiles.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"ModelNumber":0,"Type":"Cycles", "FeatureCycles":[1,2,3,4],"ClassifierCycles": 5}` + "\n\r\n"))
	f.Add([]byte(`{"ModelNumber":0,"Type":"Times", "FeatureTimes":[0.1,0.2], "ClassifierTime": 0.000194629, }` + "\r"))
	f.Add([]byte("{\"ModelNumber\":2,\"Classification\":2}\nModel 1 does not have profiling enabled\n"))
	f.Fuzz(func(t *testing.T, b []byte) { records.Fuzz(t, sensiml.Format(), "board.log", b) })
}
