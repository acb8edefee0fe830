package compiler_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/record/tpu/compiler"
)

const logText = `[bmprofile] arch=4
[bmprofile] net_name=some net
[bmprofile] tpu_freq=0
[bmprofile] is_mlir=1
...Start Profile Log...
[bmprofile] start to run subnet_id=2
[bmprofile] start parallel.
[bmprofile] gdma cmd_id bd_id=0 gdma_id=0 gdma_dir=0 gdma_func=1 core=0
[bmprofile] local_layer: layer_id=20 layer_type=Load layer_name=the name of it
[bmprofile] tensor_id=-1 is_in=1 shape=[1x3x128x128] dtype=0 is_const=0 gaddr=687195422720 gsize=12 loffset=0 nslice=0 hslice=0 l2addr=0
[bmprofile] tensor_id=20 is_in=0 shape=[] dtype=99 is_const=1 gaddr=0 gsize=0 loffset=65536 nslice=1 hslice=128 l2addr=0
[bmprofile] gdma cmd_id bd_id=7 gdma_id=0 gdma_dir=1 gdma_func=0 core=1
[bmprofile] end parallel.
[bmprofile] gdma cmd_id bd_id=0 gdma_id=1048577 bd_func=12 core=1
[bmprofile] local_layer: layer_id=20 layer_type=Load layer_name=
[bmprofile] tensor_id=20 is_in=0 shape=[4] dtype=1 is_const=1 gaddr=0 gsize=0 loffset=65536 nslice=1 hslice=128 l2addr=0
[bmprofile] bd cmd_id bd_id=92 gdma_id=159 bd_func=3
[bmprofile] insert bd end (cmd_id bd_id=93)
[bmprofile] gdma_layer: gdma_type=1
[bmprofile] gdma cmd_id bd_id=0 gdma_id=161 gdma_dir=2 gdma_func=6
[bmprofile] end to run subnet_id=2
[bmprofile] core_list=0,1,
[bmprofile] mtype=1 addr=4900511744 size=909312 alloc=1764051392743691 free=0 desc=neuron_mem
[bmprofile] new_thing=5
nonsense
`

// TestLog reads lines of all shapes, with a command before the first layer.
func TestLog(t *testing.T) {
	l, err := compiler.ReadLog(strings.NewReader(logText))
	if err != nil {
		t.Fatal(err)
	}
	if l.Arch != 4 || l.NetName != "some net" || l.FreqMHz != 0 || !l.Named || !l.Started || !cmp.Equal(l.Cores, []int{0, 1}) {
		t.Errorf("head is %+v", l)
	}
	want := compiler.Commands{
		DMA: []bool{true, true, false, false, true}, Core: []uint8{0, 1, 1, 0, 0}, Subnet: []int32{2, 2, 2, 2, 2},
		Own: []uint32{0, 0, 0, 92, 161}, Dep: []uint32{0, 7, 1048577, 159, 0}, Func: []int8{1, 0, 12, 3, 6}, Dir: []int8{0, 1, -1, -1, 2},
		Line: []int32{-1, 0, 0, 1, 2},
	}
	if diff := cmp.Diff(want, l.Commands); diff != "" {
		t.Error(diff)
	}
	layers := []compiler.LayerLine{
		{ID: 20, Subnet: 2, Scope: compiler.Local, Type: "Load", Name: "the name of it", FirstTensor: 0, EndTensor: 2},
		// a slice: its tensors are known
		{ID: 20, Subnet: 2, Scope: compiler.Local, Type: "Load", FirstTensor: 2, EndTensor: 2},
		{ID: -1, Subnet: 2, Scope: compiler.Move, Type: "Store", FirstTensor: 2, EndTensor: 2},
	}
	if diff := cmp.Diff(layers, l.Layers); diff != "" {
		t.Error(diff)
	}
	tensors := []compiler.TensorLine{
		{ID: -1, In: true, Shape: []int64{1, 3, 128, 128}, Global: 687195422720, Bytes: 12},
		{ID: 20, Shape: []int64{}, DType: 99, Const: true, Local: 65536},
	}
	if diff := cmp.Diff(tensors, l.Tensors); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]compiler.Allocation{{Kind: 1, Address: 4900511744, Bytes: 909312, Alloc: 1764051392743691, Name: "neuron_mem"}}, l.Memory); diff != "" {
		t.Error(diff)
	}
	if l.Unknown != 2 {
		t.Errorf("%d lines without a meaning, want 2", l.Unknown)
	}
}

const estimateText = `
ENGINE_BD            ENGINE_GDMA
                     Load_20|GDMA_TENSOR|s:0|b:0|g:1|e:99|t:100|dr:0|sz:196608|bw:50.32
Cast_A_23|AR|s:100|b:1|g:1|e:149|t:50    Load_21|GDMA_TENSOR|s:100|b:0|g:2|e:119|t:20|dr:1|sz:7680
broken|AR|s:x
--------
API_END total_cycle:160|b:1|g:2
TCYC : 160. (bdc_cycle:1, gdma_cycle:2)
GDMA SUMMARY : |dr[0] S2L:196608|dr[1] L2S:7680|dr[2] S2S:5|dr[3] L2L:0
flops: 1000, runtime: 0.5ms, ComputationAbility: 0.28T
ENGINE_BD            ENGINE_GDMA
LAYER_7|AR|s:10|b:1|g:1|e:19|t:10
--------
TCYC : 30
GDMA SUMMARY : |dr[0] S2L:1|dr[1] L2S:1|dr[2] S2S:1|dr[3] L2L:1
flops: 500, runtime: 0.25ms, ComputationAbility: 0.28T
`

// TestEstimate reads two tables, the second one behind the first.
func TestEstimate(t *testing.T) {
	e, err := compiler.ReadEstimate(strings.NewReader(estimateText))
	if err != nil {
		t.Fatal(err)
	}
	type item struct {
		DMA           bool
		Layer         int64
		Op, Func      string
		Start, Cycles int64
		Dir           int8
		Bytes         int64
		Table         int32
	}
	var got []item
	for _, x := range e.Items {
		got = append(got, item{x.DMA, x.Layer, e.Names[x.Op], e.Names[x.Func], x.Start, x.Cycles, x.Dir, x.Bytes, x.Table})
	}
	want := []item{
		{true, 20, "Load", "GDMA_TENSOR", 0, 100, 0, 196608, 0},
		{false, 23, "Cast_A", "AR", 100, 50, -1, 0, 0},
		{true, 21, "Load", "GDMA_TENSOR", 100, 20, 1, 7680, 0},
		{false, 7, "LAYER", "AR", 170, 10, -1, 0, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if e.Total != 190 || e.Moved != [4]int64{196609, 7681, 6, 1} || e.FLOPs != 1500 || e.RuntimeS != 0.00075 || e.Bad != 1 || e.Tables != 2 {
		t.Errorf("%+v", e)
	}
}

const programText = `#loc = loc(unknown)
#loc1 = loc("x.1")
module @blaze attributes {module.FLOPs = 63714176 : i64, module.chip = "bm1688", module.cores = 2 : i64, module.inputs = ["x.1", "y"], module.mode = "F16", module.outputs = ["out"]} {
  module @blaze attributes {module.coeff_addr = 618 : i64, module.coeff_size = 45 : i64, module.neuron_addr = 687 : i64, module.neuron_size = 90 : i64} {
    func.func @main(%arg0: tensor<1x3xf32> loc(unknown)) -> tensor<1xf32> {
      %1 = "tpu.Cast"(%arg0) {a = "b"} : (tensor<1x3xf32, 5 : i64>) -> tensor<1x3xf16, 6 : i64> loc(#loc2)
      %8:2 = "tpu.Group"(%1) ({
        %9 = "tpu.Load"(%1) : (tensor<1x3xf16>) -> tensor<1x3xf16> loc("here \"it\" is")
        "tpu.Yield"(%9) : (tensor<1x3xf16>) -> () loc(#loc4)
      }) {flow = [[0]]} : (tensor<1x3xf16>) -> tensor<1xf32> loc(#loc5)
      %10 = "tpu.CoreParallel"(%1) ({
      %11 = "top.None"() : () -> none loc(#loc)
#loc2 = loc("cast_f16")
#loc4 = loc(fused[#loc1, #loc2])
#loc5 = loc(fused[#loc5])
`

// TestProgram reads operations, names and groups.
func TestProgram(t *testing.T) {
	p, err := compiler.ReadProgram(strings.NewReader(programText))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "blaze" || p.Chip != "bm1688" || p.Mode != "F16" || p.FLOPs != 63714176 || p.Cores != 2 ||
		!cmp.Equal(p.Inputs, []string{"x.1", "y"}) || !cmp.Equal(p.Outputs, []string{"out"}) || p.Weights != [2]int64{618, 45} || p.Activations != [2]int64{687, 90} {
		t.Errorf("%+v", p)
	}
	want := map[int64]compiler.Operation{
		6: {Name: "Cast", Location: "cast_f16", Shape: []int64{1, 3}, Type: "f16"}, 7: {Name: "Group"},
		8: {Name: "Load", Location: `here "it" is`, Shape: []int64{1, 3}, Type: "f16"}, 11: {Name: "CoreParallel"}, 12: {Name: "None"},
	}
	if diff := cmp.Diff(want, p.Ops); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]compiler.Group{{Begin: 7, End: 9}}, p.Groups); diff != "" {
		t.Error(diff)
	}
}

const placesText = `[{"file-line": 13, "subnet_id": 1, "core_id": 2, "opcode": "tpu.Gather", "tiu_dma_id(before)": [0, 1], "tiu_dma_id(after)": [2, 3],
"operands": [{"memory_type": "<24x2048xbf16>", "name": "w"}, {}], "results": [{"memory_type": "<f32>", "name": "é"}]},
{"file-line": 14}, {"file-line": 13, "subnet_id": 1, "core_id": 0, "opcode": "tpu.Gather", "tiu_dma_id(before)": [2, 3], "tiu_dma_id(after)": [2, 4], "results": [{"name":"again"}]}]`

// TestPlaces reads entries; tensors are those of an operation's first one.
func TestPlaces(t *testing.T) {
	l, err := compiler.ReadLocations(strings.NewReader(placesText))
	if err != nil {
		t.Fatal(err)
	}
	want := []compiler.Location{
		{
			Line: 13, Subnet: 1, Core: 2, Op: "tpu.Gather", Before: [2]int64{0, 1}, After: [2]int64{2, 3},
			Operands: []compiler.Place{{Name: "w", Type: "bf16", Shape: []int64{24, 2048}}, {}}, Results: []compiler.Place{{Name: "é", Type: "f32", Shape: []int64{}}},
		},
		{Line: 13, Subnet: 1, Op: "tpu.Gather", Before: [2]int64{2, 3}, After: [2]int64{2, 4}},
	}
	if diff := cmp.Diff(want, l.List); diff != "" || l.Bad != 1 {
		t.Error(diff, l.Bad)
	}
}

// FuzzTexts reads any text as each file: no panic, columns of one length.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{logText, estimateText, programText, placesText, "bd cmd_id bd_func=", "local_layer:", "tensor_id=", "[[[{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := compiler.ReadLog(strings.NewReader(s))
		c := l.Commands
		for _, n := range []int{len(c.Core), len(c.Subnet), len(c.Own), len(c.Dep), len(c.Func), len(c.Dir), len(c.Line)} {
			if n != c.Len() || err != nil {
				t.Fatalf("%d and %d commands, %v", n, c.Len(), err)
			}
		}
		for _, line := range l.Layers {
			if line.FirstTensor > line.EndTensor || line.EndTensor > len(l.Tensors) {
				t.Fatalf("%+v", line)
			}
		}
		e, err := compiler.ReadEstimate(strings.NewReader(s))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range e.Items {
			if max(int(x.Op), int(x.Func)) >= len(e.Names) || x.Start < 0 || x.Cycles < 0 || x.Table >= e.Tables {
				t.Fatalf("%+v", x)
			}
		}
		if p, err := compiler.ReadProgram(strings.NewReader(s)); err != nil || p == nil {
			t.Fatal(err)
		}
		if l, err := compiler.ReadLocations(strings.NewReader(s)); err == nil {
			for _, x := range l.List {
				if min(x.Line, x.Before[0], x.Before[1], x.After[0], x.After[1]) < 0 {
					t.Fatalf("%+v", x)
				}
			}
		}
	})
}
