package tpurecords

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// log is global.profile.
func (d *Directory) log() []byte {
	o := &d.Options
	b := fmt.Appendf(nil, "[bmprofile] arch=%d\n[bmprofile] net_name=made_up\n[bmprofile] tpu_freq=%d\n[bmprofile] is_mlir=1\n...Start Profile Log...\n", o.Chip.Arch[0], d.freq())
	for _, s := range d.Subnets {
		b = fmt.Appendf(b, "[bmprofile] start to run subnet_id=%d\n", s.ID)
		layer := -1
		var last [2]uint32
		for i := range s.Commands {
			c := &s.Commands[i]
			if c.Layer != layer {
				layer = c.Layer
				n := s.FirstLayer + layer
				b = fmt.Appendf(b, "[bmprofile] local_layer: layer_id=%d layer_type=Add layer_name=\n", n)
				b = fmt.Appendf(b, "[bmprofile] tensor_id=%d is_in=1 shape=[1x8x8x8] dtype=1 is_const=0 gaddr=0 gsize=0 loffset=0 nslice=1 hslice=8 l2addr=0\n", n-1)
				b = fmt.Appendf(b, "[bmprofile] tensor_id=%d is_in=0 shape=[1x8x8x8] dtype=1 is_const=0 gaddr=0 gsize=0 loffset=4096 nslice=1 hslice=8 l2addr=0\n", n)
			}
			b = d.line(b, c)
			k := 0
			if c.DMA {
				k = 1
			}
			last[k] = c.Own
		}
		if o.Chip == command.BM1684X {
			b = fmt.Appendf(b, "[bmprofile] insert bd end (cmd_id bd_id=%d)\n[bmprofile] bd cmd_id bd_id=%d gdma_id=0 bd_func=15\n", last[0]+1, last[0]+1)
			b = fmt.Appendf(b, "[bmprofile] insert gdma end (cmd_id gdma_id=%d)\n[bmprofile] gdma cmd_id bd_id=0 gdma_id=%d gdma_dir=0 gdma_func=6\n", last[1]+1, last[1]+1)
		}
		b = fmt.Appendf(b, "[bmprofile] end to run subnet_id=%d\n", s.ID)
	}
	return append(b, "[bmprofile] core_list=0,\n[bmprofile] mtype=1 addr=4294967296 size=1048576 alloc=1700000000000000 free=0 desc=neuron_mem\n"...)
}

func (d *Directory) freq() int {
	if d.Options.Chip == command.BM1684X {
		return int(d.Options.TIUHz / 1e6)
	}
	return 0
}

// line is a command's line: chips without ids of their own write them in one form.
func (d *Directory) line(b []byte, c *Command) []byte {
	way := 0
	if c.Store {
		way = 1
	}
	if d.Options.Chip.Own {
		if c.DMA {
			return fmt.Appendf(b, "[bmprofile] gdma cmd_id bd_id=%d gdma_id=%d gdma_dir=%d gdma_func=0\n", c.Dep, c.Own, way)
		}
		return fmt.Appendf(b, "[bmprofile] bd cmd_id bd_id=%d gdma_id=%d bd_func=3\n", c.Own, c.Dep)
	}
	if c.DMA {
		return fmt.Appendf(b, "[bmprofile] gdma cmd_id bd_id=%d gdma_id=0 gdma_dir=%d gdma_func=0 core=0\n", c.Dep, way)
	}
	return fmt.Appendf(b, "[bmprofile] gdma cmd_id bd_id=0 gdma_id=%d bd_func=3 core=0\n", c.Dep)
}

// Slower is how much longer the estimate takes each command to be, in tenths.
const Slower = 12

// estimate is net_stat.sim: the truth, longer.
func (d *Directory) estimate() []byte {
	var b []byte
	for _, s := range d.Subnets {
		b = append(b, "ENGINE_BD     ENGINE_GDMA\n"...)
		var load, store, end int64
		for i := range s.Commands {
			c := &s.Commands[i]
			start, stop := c.Start, c.End
			if c.DMA { // cycles of the tensor engine
				start, stop = int64(float64(start)*d.Ratio()), int64(float64(stop)*d.Ratio())
			}
			start, stop = start*Slower/10, stop*Slower/10
			end = max(end, stop)
			n := s.FirstLayer + c.Layer
			if !c.DMA {
				b = fmt.Appendf(b, "Add_%d|AR|s:%d|b:%d|g:%d|e:%d|t:%d\n", n, start, c.Own, c.Dep, stop-1, stop-start)
				continue
			}
			way := 0
			if c.Store {
				way = 1
				store += c.Bytes
			} else {
				load += c.Bytes
			}
			b = fmt.Appendf(b, "      Add_%d|GDMA_TENSOR|s:%d|b:%d|g:%d|e:%d|t:%d|dr:%d|sz:%d|bw:1.00\n", n, start, c.Dep, c.Own, stop-1, stop-start, way, c.Bytes)
		}
		b = fmt.Appendf(b, "-----\nAPI_END total_cycle:%d|b:1|g:1\nTCYC : %d\nGDMA SUMMARY : |dr[0] S2L:%d|dr[1] L2S:%d|dr[2] S2S:0|dr[3] L2L:0\n", end, end, load, store)
		b = fmt.Appendf(b, "flops: %d, runtime: %fms, ComputationAbility: 1.0T\n", 1000*len(s.Commands), float64(end)/d.Options.TIUHz*1e3)
	}
	return b
}

// Places is a tensor_location.json of the subnets; shift moves its lines, for one that
// contradicts the log.
func (d *Directory) Places(shift int) []byte {
	b := []byte("[")
	for _, s := range d.Subnets {
		var n [2]int
		for i := 0; i < len(s.Commands); {
			before := n
			layer := s.Commands[i].Layer
			for ; i < len(s.Commands) && s.Commands[i].Layer == layer; i++ {
				if s.Commands[i].DMA {
					n[1]++
				} else {
					n[0]++
				}
			}
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `{"file-line": %d, "subnet_id": %d, "core_id": 0, "opcode": "tpu.Add", "tiu_dma_id(before)": [%d, %d], "tiu_dma_id(after)": [%d, %d], "operands": [{}], "results": []}`,
				s.FirstLayer+layer+shift, s.ID, before[0], before[1], n[0], n[1])
		}
	}
	return append(b, ']')
}
