package tpu_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

func sample(t testing.TB, elem ...string) (string, *profile.Profile) {
	t.Helper()
	dir := material.Path(t, append([]string{"raw", "bmprofile"}, elem...)...)
	list, faults, err := record.Find(dir)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	return dir, one(t, &record.Input{Files: list})
}

// bars counts the bars of lanes with a name, and adds up what they moved from and to.
func bars(p *profile.Profile, group, name, way string) (n int, moved int64) {
	tl := p.Timeline
	for i := range tl.Lanes {
		l := &tl.Lanes[i]
		if l.Group != group || l.Name != name {
			continue
		}
		n += len(l.Starts)
		for k := range l.Starts {
			if l.Directions != nil && l.Directions[k] >= 0 && tl.Names[l.Directions[k]] == way {
				moved += l.Bytes[k]
			}
		}
	}
	return n, moved
}

// labelled counts the bars of a lane whose label begins so.
func labelled(p *profile.Profile, group, name, label string) (n int) {
	for i := range p.Timeline.Lanes {
		l := &p.Timeline.Lanes[i]
		for k := range l.Starts {
			if l.Group == group && l.Name == name && strings.HasPrefix(p.Timeline.Names[l.Labels[k]], label) {
				n++
			}
		}
	}
	return n
}

// summary reads the bytes by direction that the compiler states.
func summary(t *testing.T, dir string) (load, store, copied int64) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "net_stat.sim"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`S2L:(\d+)\|dr\[1\] L2S:(\d+)\|dr\[2\] S2S:(\d+)`).FindSubmatch(b)
	var v [3]int64
	for i := range v {
		v[i], _ = strconv.ParseInt(string(m[i+1]), 10, 64)
	}
	return v[0], v[1], v[2]
}

// TestSamples compares real recordings with what is known about them: rows of the vendor's
// own output less what it mixes in, bytes by the compiler, times by section 2.
func TestSamples(t *testing.T) {
	for _, x := range []struct {
		dir, chip string
		micros    float64 // latency
		tolerance float64
		// Bars on core 0: commands of the engines with those that order them, copies of the
		// runtime.
		tiu, gdma, runtime int
		waits              string
		lost               float64
		layers             int
	}{
		// The vendor's sum is of cycles without the end of the last one: to a nanosecond.
		{"bmprofile_data-1_bm1684x", "bm1684x", 181.176, 1e-3, 90, 160, 3, "246 dep", 3, 187},
		// Its times are cut to whole nanoseconds.
		{"bmprofile_data-1_bm1688", "bm1688", 303.964, 2e-3, 137, 166, 3, "300 dep", 0, 190},
		// It has the cores 15 ns apart, and an offset of 0 between the engines: 24 ns.
		{"bmprofile_data-1_bm1688_2core", "bm1688", 2176.268, 40e-3, 257, 145, 2, "375 dep", 0, 152},
		{"bmprofile_data-1_cv184x", "cv184x", 2172.71, 2e-3, 116, 225, 6, "336 dep", 0, 188},
		{"cdm_profile_data_dev0_bm1690", "bm1690", 133.158, 1e-3, 87, 170, 0, "237 dep", 0, 187},
	} {
		t.Run(x.dir, func(t *testing.T) {
			dir, p := sample(t, x.dir)
			if p.Target.ID != x.chip {
				t.Errorf("target is %s", p.Target.ID)
			}
			near(t, "latency, µs", total(t, p, "latency_s")*1e6, x.micros, x.tolerance)
			sums(t, p)
			tiu, _ := bars(p, "core 0", "TIU", "")
			gdma, _ := bars(p, "core 0", "GDMA", "")
			tiu += labelled(p, "core 0", "synchronisation", "TIU ")
			gdma += labelled(p, "core 0", "synchronisation", "GDMA ")
			runtime, _ := bars(p, "core 0", "runtime's copies", "")
			if tiu != x.tiu || gdma != x.gdma || runtime != x.runtime {
				t.Errorf("%d tensor commands, %d copies and %d of the runtime, want %d, %d and %d", tiu, gdma, runtime, x.tiu, x.gdma, x.runtime)
			}
			f := finding(p, "tpu.axis")
			if f == nil || !strings.Contains(f.Text, x.waits) || !strings.Contains(f.Text, "none of them contradicted") {
				t.Errorf("finding about the axis is %+v", f)
			}
			if v, _ := p.Totals.Value("commands_lost"); v != x.lost {
				t.Errorf("%v commands lost, want %v", v, x.lost)
			}
			if len(p.Layers) != x.layers {
				t.Errorf("%d layers, want %d", len(p.Layers), x.layers)
			}
			if finding(p, "tpu.log") != nil || finding(p, "tpu.layers.disagree") != nil || finding(p, "tpu.layers") != nil {
				t.Errorf("layers are in doubt: %+v", p.Findings)
			}
			apart(t, p)
			if _, err := os.Stat(filepath.Join(dir, "net_stat.sim")); err == nil {
				load, store, copied := summary(t, dir)
				_, l := bars(p, "core 0", "GDMA", "DDR to LMEM")
				_, s := bars(p, "core 0", "GDMA", "LMEM to DDR")
				_, c := bars(p, "core 0", "GDMA", "DDR to DDR")
				if l != load || s != store || c != copied {
					t.Errorf("core 0 moved %d, %d and %d bytes, the compiler says %d, %d and %d", l, s, c, load, store, copied)
				}
			}
		})
	}
}

// apart checks that no command starts before the one that it waits for has ended, by
// the links and the bars alone.
func apart(t *testing.T, p *profile.Profile) {
	t.Helper()
	if len(p.Timeline.Links) < 50 {
		t.Errorf("%d links", len(p.Timeline.Links))
	}
	for _, l := range p.Timeline.Links {
		a, b := &p.Timeline.Lanes[l.FromLane], &p.Timeline.Lanes[l.ToLane]
		end := a.Starts[l.FromBar] + a.Durations[l.FromBar]
		// The roundings of sums of seconds are far below a tenth of a nanosecond.
		if !(end <= b.Starts[l.ToBar]+1e-10) {
			t.Errorf("%s bar %d starts %g s before the %s bar %d that it waited for has ended", b.Name, l.ToBar, end-b.Starts[l.ToBar], a.Name, l.FromBar)
		}
	}
}

// TestTwoCores has layers on both cores, and cores that meet where they wait for one
// another.
func TestTwoCores(t *testing.T) {
	_, p := sample(t, "bmprofile_data-1_bm1688_2core")
	for _, core := range []string{"core 0", "core 1"} {
		for i := range p.Timeline.Lanes {
			l := &p.Timeline.Lanes[i]
			if l.Group != core || l.Kind != timeline.Engine || l.Name != "TIU" && l.Name != "GDMA" {
				continue
			}
			for k, layer := range l.Layers {
				if layer < 0 {
					t.Errorf("%s %s bar %d has no layer", core, l.Name, k)
				}
			}
		}
	}
	// The messages: the k-th that core 1 waited for is released with core 0's.
	var at [2][]float64
	for i := range p.Timeline.Lanes {
		l := &p.Timeline.Lanes[i]
		if l.Name != "synchronisation" {
			continue
		}
		core := strings.TrimPrefix(l.Group, "core ")[0] - '0'
		for k := range l.Starts {
			if strings.Contains(p.Timeline.Names[l.Labels[k]], "wait") {
				at[core] = append(at[core], l.Starts[k])
			}
		}
	}
	if len(at[0]) != 6 || len(at[1]) != 6 {
		t.Fatalf("%d and %d waits, want 6 each", len(at[0]), len(at[1]))
	}
	for k := range at[0] {
		// The first one differs by 15 ns from the others in the record itself.
		near(t, "wait "+strconv.Itoa(k), at[1][k], at[0][k], 16e-9)
	}
}

// TestNames takes the original layers' names from the program where it is there.
func TestNames(t *testing.T) {
	_, p := sample(t, "bmprofile_data-1_bm1688")
	conv := 0
	for i := range p.Layers {
		l := &p.Layers[i]
		if strings.HasSuffix(l.Name, "_"+l.Option("line")) {
			t.Errorf("layer %d is called %q: it has a name in final.mlir", i, l.Name)
		}
		if l.Op == "Conv2D" {
			conv++
			if len(l.Outputs) != 1 || l.Outputs[0].DType != "float16" && l.Outputs[0].DType != "float32" || l.Outputs[0].Name != l.Name {
				t.Errorf("outputs of %s are %+v", l.Name, l.Outputs)
			}
		}
	}
	if conv == 0 {
		t.Error("no Conv2D")
	}
	if got := p.Model.Inputs; len(got) != 1 || got[0].Name != "x.1" || got[0].DType != "float32" || len(got[0].Shape) != 4 {
		t.Errorf("inputs are %+v", got)
	}
}

// TestEstimate reads what the compiler leaves for a model that did not run.
func TestEstimate(t *testing.T) {
	for _, x := range []struct {
		dir    string
		cycles float64
		load   float64
	}{{"block_cache_0", 666_980, 31_855_104}, {"embedding", 70_247, 4096}, {"lm_head", 0, 0}} {
		_, p := sample(t, "compile_only_bm1684x_qwen3.5-2b", x.dir)
		if x.cycles > 0 {
			near(t, x.dir+" expected", total(t, p, "expected_s"), x.cycles/1e9, 1e-15)
			near(t, x.dir+" load_bytes", total(t, p, "load_bytes"), x.load, 0)
		}
		if p.Totals.Latency != nil || p.Timeline == nil {
			t.Errorf("%s: a time without a run, or no timeline", x.dir)
		}
		all := 0.0
		for i := range p.Layers {
			if v, ok := p.Layers[i].Expected.Best(); ok {
				all += v
			}
		}
		if want := total(t, p, "expected_s"); !(all > 0.9*want && all <= want*(1+1e-9)) {
			t.Errorf("%s: layers add up to %g of %g s", x.dir, all, want)
		}
	}
}

// TestDumps reads the text dumps of the vendor's converter, with its own sums.
func TestDumps(t *testing.T) {
	for _, x := range []struct {
		dir         string
		micros      float64
		tiu, gdma   int
		ratio, fill float64 // parts of the whole time and of the operations, as it prints them
	}{
		{"bmprofile_data-1_bm1688", 303.964, 137, 166, 0.3536, 0.6929},
		{"bmprofile_data-1_cv184x", 1697.54, 116, 225, 0.4643, 0.6927},
	} {
		_, p := sample(t, "reference_output", x.dir)
		near(t, x.dir, total(t, p, "latency_s")*1e6, x.micros, 3e-3) // whole cycles
		near(t, x.dir+" TIU", total(t, p, "tiu_busy_s")/total(t, p, "latency_s"), x.ratio, 6e-4)
		near(t, x.dir+" fill", total(t, p, "ops_fill"), x.fill, 6e-5)
		if n, _ := bars(p, "core 0", "TIU", ""); n != x.tiu {
			t.Errorf("%d tensor commands, want %d", n, x.tiu)
		}
		if n, _ := bars(p, "core 0", "GDMA", ""); n != x.gdma {
			t.Errorf("%d copies, want %d", n, x.gdma)
		}
	}
}

// TestAccesses compares accesses with the vendor's own table of them on BM1684X, whose
// number is known, and the way round with what copies must do.
func TestAccesses(t *testing.T) {
	_, p := sample(t, "bmprofile_data-1_bm1684x")
	n := map[string]int{}
	for i := range p.Timeline.Memories {
		m := &p.Timeline.Memories[i]
		n[m.Name] += len(m.Starts)
		for k := range m.Starts {
			if m.Ends[k] > m.Starts[k]+1 || math.IsNaN(m.Starts[k]) {
				t.Fatalf("%s access %d is from %v to %v", m.Name, k, m.Starts[k], m.Ends[k])
			}
		}
	}
	if n["local memory (a lane)"] != 403 {
		t.Errorf("%d accesses to local memory, want the 403 of the vendor's table", n["local memory (a lane)"])
	}
	// Bytes read in local memory by stores are those of the layers that wrote them: at
	// least one write stands before the first read of each bank.
	for i := range p.Timeline.Memories {
		m := &p.Timeline.Memories[i]
		if !strings.HasPrefix(m.Name, "local") {
			continue
		}
		if len(m.Partitions) != 16 {
			t.Errorf("%d banks", len(m.Partitions))
		}
		if m.Writes[0] != 1 {
			t.Error("local memory is read before anything was written")
		}
	}
	// No access leaves its bank's memory, those of the runtime's copies included, whose
	// addresses do not tell memories apart.
	for _, dir := range []string{"bmprofile_data-1_bm1688", "bmprofile_data-1_bm1688_2core", "bmprofile_data-1_cv184x", "cdm_profile_data_dev0_bm1690"} {
		_, p := sample(t, dir)
		for i := range p.Timeline.Memories {
			m := &p.Timeline.Memories[i]
			if !strings.HasPrefix(m.Name, "local") {
				continue
			}
			last := m.Partitions[len(m.Partitions)-1]
			for k := range m.Starts {
				if m.Addresses[k]+m.Sizes[k] > last.Address+last.Bytes {
					t.Errorf("%s: %d bytes at %d of local memory", dir, m.Sizes[k], m.Addresses[k])
				}
			}
		}
	}
}
