package capture

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// ChipError is the error for a chip that the user named and the files of the record contradict.
type ChipError struct {
	Asked string   // as the user named it
	Says  []string // what the files say
}

// Error names both and what to do.
func (e *ChipError) Error() string {
	return fmt.Sprintf("the record is not of %s: %s; leave out --arch, or add --force to read it as %s all the same", e.Asked, strings.Join(e.Says, ", "), e.Asked)
}

// detect finds the chip from the option, the statements of files, and the sizes and contents of
// records. It records contradictions; those of the option are an error unless it is forced.
func (r *Recording) detect(in *record.Input) error {
	type claim struct {
		from string
		chip *command.Chip
	}
	var claims []claim
	add := func(from string, c *command.Chip) {
		if c != nil {
			claims = append(claims, claim{from, c})
		}
	}
	if in.Arch != "" {
		add("option", command.ByName(in.Arch))
	}
	add("global.profile", command.ByArch(r.Log.Arch))
	add("global.profile", named(r.Log.ArchName))
	if r.Program != nil {
		add("final.mlir", named(r.Program.Chip))
	}
	sniffed, sure := sniff(in.Files)
	if sure || len(claims) == 0 {
		add("records", sniffed)
	}
	if len(claims) == 0 {
		add("estimate", byEstimate(r))
	}
	if len(claims) == 0 {
		return nil
	}
	r.Chip, r.ChipFrom = claims[0].chip, claims[0].from
	// BM1688 and CV186X have the same number in the log and the same records. The program names the
	// chip.
	for _, c := range claims[1:] {
		if c.from == "final.mlir" && alike(r.Chip, c.chip) && r.ChipFrom == "global.profile" {
			r.Chip, r.ChipFrom = c.chip, c.from
		}
	}
	for _, c := range claims {
		if !alike(c.chip, r.Chip) {
			r.Says = append(r.Says, fmt.Sprintf("%s says %s", c.from, c.chip.Name))
		}
	}
	if r.ChipFrom == "option" && len(r.Says) > 0 && !in.ForceArch {
		return &ChipError{Asked: r.Chip.Name, Says: r.Says}
	}
	return nil
}

// named returns the chip by its name in compiler output, nil for unknown names.
func named(name string) *command.Chip {
	if c := command.ByName(name); c != nil {
		return c
	}
	switch strings.ToLower(name) {
	case "mars3":
		return command.CV184X
	case "sg2260", "bm1690e", "sg2260e":
		return command.BM1690
	}
	return nil
}

// alike reports whether two chips have the same records.
func alike(a, b *command.Chip) bool { return a.Report == b.Report }

// byEstimate returns the chip by the clock of the estimate. The compiler's files do not name it.
func byEstimate(r *Recording) *command.Chip {
	if r.Estimate == nil && !r.Log.Started {
		return nil
	}
	chip := command.BM1684X
	why := "and no clock of an estimate tells it"
	if e := r.Estimate; e != nil && e.RuntimeS > 0 {
		why = "and no chip has the clock of the estimate"
		hz := float64(e.Total) / e.RuntimeS
		for _, c := range []*command.Chip{command.BM1684X, command.BM1688, command.CV184X, command.BM1684} {
			if math.Abs(hz/c.TIUClock-1) < 0.01 {
				r.Guesses = append(r.Guesses, fmt.Sprintf("No file names the chip; %s was assumed by the clock of the estimate", c.Name))
				return c
			}
		}
	}
	r.Guesses = append(r.Guesses, fmt.Sprintf("No file names the chip, %s; %s was assumed. Name it with --arch", why, chip.Name))
	return chip
}

const sniffBytes = 64 << 10

// sniff returns the chip whose layouts fit the first records of files best. sure is false if two
// chips fit equally well.
func sniff(files []*record.File) (best *command.Chip, sure bool) {
	data := map[block.Type][]byte{}
	length := map[block.Type][]int64{}
	var bytes, announced int64 // of command streams
	for _, f := range files {
		k := KindOf(f)
		if k != StepFile && k != CoreFile {
			continue
		}
		in, err := f.Open()
		if err != nil {
			continue
		}
		seen := 0
		_, _ = block.Scan(in, func(t block.Type, n int64, p io.Reader) error {
			switch t {
			case block.MonitorBD, block.MonitorGDMA, block.Commands:
				length[t] = append(length[t], n)
				if len(data[t]) == 0 {
					data[t], _ = io.ReadAll(io.LimitReader(p, sniffBytes))
				}
			}
			if seen++; seen > 1000 || len(data[block.MonitorBD]) > 0 && len(data[block.MonitorGDMA]) > 0 {
				return io.EOF
			}
			return nil
		})
		_ = in.Close()
		if len(data[block.MonitorBD])+len(data[block.MonitorGDMA]) > 0 {
			break
		}
	}
	s, _ := block.ParseStreams(data[block.Commands], false)
	for _, g := range s.Groups {
		announced += int64(g[0]) + int64(g[1])
	}
	for _, f := range files {
		if KindOf(f) == Stream && f.Whole {
			bytes += int64(len(f.Head))
		}
	}
	most, second := 0.0, 0.0
	for _, c := range command.Chips {
		if c == command.CV186X {
			continue
		}
		score := 0.0
		for t, e := range map[block.Type]block.Engine{block.MonitorBD: block.TIU, block.MonitorGDMA: block.GDMA} {
			score += sense(block.LayoutOf(c.Name, e), data[t], length[t])
		}
		// Commands of BM1684 have 128 bytes each.
		if fixed := announced > 0 && bytes == announced*128; fixed && c == command.BM1684 || !fixed && c == command.BM1684X {
			score += 0.01
		}
		if score > most {
			best, most, second = c, score, most
		} else {
			second = max(second, score)
		}
	}
	if most <= 0.5 {
		return nil, false
	}
	return best, most-second >= 0.3
}

// sense returns how well a layout fits records: the share of records that end after their start and
// follow the one before, 0 if the length is not a multiple of the record's size.
func sense(l *block.Layout, data []byte, lengths []int64) float64 {
	if l == nil || len(data) < l.Size {
		return 0
	}
	for _, n := range lengths {
		if n%int64(l.Size) != 0 {
			return 0
		}
	}
	t := l.NewTable(block.Start, block.End, block.ID)
	t.Add(data)
	start, end, id := t.Column(block.Start), t.Column(block.End), t.Column(block.ID)
	good := 0.0
	for i := range start {
		const most = 1 << 28 // cycles that one command may take
		if end[i]-start[i] < most {
			good += 0.5
		}
		if i == 0 || id[i] == id[i-1]+1 || id[i] == 0 {
			good += 0.5
		}
	}
	return good / float64(len(start))
}
