package command

import "strings"

// Role is the meaning of a field that several layouts have under names of their own.
type Role uint8

// Roles of the fields of tensor commands and copies.
const (
	CmdShort Role = iota
	CmdID
	CmdDep
	TaskType
	TaskSub
	Res0N
	Res0C
	Res0H
	Res0W
	Opd0N
	Opd0C
	Opd0H
	Opd0W
	Opd1N
	Opd1C
	Opd1H
	Opd1W
	Res0NStr
	Res0CStr
	Res0HStr
	Res0WStr
	Opd0NStr
	Opd0CStr
	Opd0HStr
	Opd0WStr
	Opd1NStr
	Opd1CStr
	Opd1HStr
	Opd1WStr
	Opd2NStr
	Opd2CStr
	Opd2HStr
	Opd2WStr
	Res0Addr
	Res1Addr
	Opd0Addr
	Opd1Addr
	Opd2Addr
	Opd3Addr
	Res0Prec
	Opd0Prec
	Opd1Prec
	Opd2Prec
	Opd0Const
	Opd1Const
	Opd2Const
	Opd3Const
	Opd0Sign
	Opd1Sign
	Opd2Sign
	ShortRes0
	ShortOpd0
	ShortOpd1
	ShortOpd2
	OpdNum
	LeftTran
	ResAdd
	KernelRotate
	Opd0XIns
	Opd0YIns
	Opd1XIns
	Opd1YIns
	UpPad
	DownPad
	LeftPad
	RightPad
	StrideX
	StrideY
	Imm
	SrcNSize
	SrcCSize
	SrcHSize
	SrcWSize
	DstNSize
	DstCSize
	DstHSize
	DstWSize
	SrcNStr
	SrcCStr
	SrcHStr
	SrcWStr
	DstNStr
	DstCStr
	DstHStr
	DstWStr
	SrcLow
	SrcHigh
	DstLow
	DstHigh
	MaskLow
	MaskHigh
	IndexLow
	IndexHigh
	SrcFormat
	DstFormat
	MaskFormat
	IndexFormat
	FillConst
	Constant
	ConstantHigh
	StrideEnable
	NCHWCopy
	CommonMode
	CopyDirection
	DecompressOn
	Index
	MaskLanesLow
	MaskLanesHigh
	IndexCSize
	IndexHSize
	IndexCStr
	IndexHStr
	// NoRole is a role that no field has.
	NoRole
)

var roleNames = map[string]Role{
	"cmd_short": CmdShort, "cmd_id": CmdID, "cmd_id_tpu": CmdID, "cmd_id_dep": CmdDep, "cmd_id_gdma": CmdDep, "eng0_sync_id": CmdDep,
	"tsk_typ": TaskType, "tsk_eu_typ": TaskSub, "cmd_type": TaskType, "cmd_special_function": TaskSub, "special_func": TaskSub,
	"cmd_special_function(mask_mem)": TaskSub,
	"res0_n":                         Res0N, "res0_c": Res0C, "res0_h": Res0H, "res0_w": Res0W,
	"opd0_n": Opd0N, "opd0_c": Opd0C, "opd0_h": Opd0H, "opd0_w": Opd0W, "opd1_n": Opd1N, "opd1_c": Opd1C, "opd1_h": Opd1H, "opd1_w": Opd1W,
	"res0_n_str": Res0NStr, "res0_c_str": Res0CStr, "res0_h_str": Res0HStr, "res0_w_str": Res0WStr,
	"opd0_n_str": Opd0NStr, "opd0_c_str": Opd0CStr, "opd0_h_str": Opd0HStr, "opd0_w_str": Opd0WStr,
	"opd1_n_str": Opd1NStr, "opd1_c_str": Opd1CStr, "opd1_h_str": Opd1HStr, "opd1_w_str": Opd1WStr,
	"opd2_n_str": Opd2NStr, "opd2_c_str": Opd2CStr, "opd2_h_str": Opd2HStr, "opd2_w_str": Opd2WStr,
	"res0_addr": Res0Addr, "res1_addr": Res1Addr, "opd0_addr": Opd0Addr, "opd1_addr": Opd1Addr, "opd2_addr": Opd2Addr, "opd3_addr": Opd3Addr,
	"res0_prec": Res0Prec, "opd0_prec": Opd0Prec, "opd1_prec": Opd1Prec, "opd2_prec": Opd2Prec,
	"opd0_const": Opd0Const, "opd1_const": Opd1Const, "opd2_const": Opd2Const, "opd3_const": Opd3Const,
	"opd0_sign": Opd0Sign, "opd1_sign": Opd1Sign, "opd2_sign": Opd2Sign,
	"res0_str": ShortRes0, "opd0_str": ShortOpd0, "opd1_str": ShortOpd1, "opd2_str": ShortOpd2,
	"tsk_opd_num": OpdNum, "left_tran": LeftTran, "res_add": ResAdd, "kernel_rotate": KernelRotate,
	"opd0_x_ins0": Opd0XIns, "opd0_y_ins0": Opd0YIns, "opd1_x_ins0": Opd1XIns, "opd1_y_ins0": Opd1YIns,
	"opd0_up_pad": UpPad, "opd0_dn_pad": DownPad, "opd0_lf_pad": LeftPad, "opd0_rt_pad": RightPad,
	"res_op_x_str": StrideX, "res_op_y_str": StrideY, "imm": Imm,
	"src_nsize": SrcNSize, "src_csize": SrcCSize, "src_hsize": SrcHSize, "src_wsize": SrcWSize,
	"dst_nsize": DstNSize, "dst_csize": DstCSize, "dst_hsize": DstHSize, "dst_wsize": DstWSize,
	"src_nstride": SrcNStr, "src_cstride": SrcCStr, "src_hstride": SrcHStr, "src_wstride": SrcWStr,
	"dst_nstride": DstNStr, "dst_cstride": DstCStr, "dst_hstride": DstHStr, "dst_wstride": DstWStr,
	// Some layouts call the low 32 bits of an address h32 and the high ones l8.
	"src_start_addr_l32": SrcLow, "src_start_addr_h32": SrcLow, "src_start_addr_h8": SrcHigh, "src_start_addr_l8": SrcHigh, "src_start_addr_h13": SrcHigh,
	"dst_start_addr_l32": DstLow, "dst_start_addr_h32": DstLow, "dst_start_addr_h8": DstHigh, "dst_start_addr_l8": DstHigh, "dst_start_addr_h13": DstHigh,
	"racu_start_addr_l32": DstLow, "racu_start_addr_h8": DstHigh, "racu_start_addr_h13": DstHigh,
	"mask_start_addr_l32": MaskLow, "mask_start_addr_h8": MaskHigh,
	"index_start_addr_l32": IndexLow, "index_start_addr_h8": IndexHigh, "index_start_addr_h13": IndexHigh,
	"src_data_format": SrcFormat, "dst_data_format": DstFormat, "mask_data_format": MaskFormat, "index_data_format": IndexFormat,
	"fill_constant_en": FillConst, "constant_value": Constant, "constant_value_l32": Constant, "constant_value_h32": ConstantHigh,
	"stride_enable": StrideEnable, "nchw_copy": NCHWCopy, "chw_copy": NCHWCopy, "common_mode": CommonMode, "direction": CopyDirection,
	"decompress_enable": DecompressOn, "index": Index, "localmem_mask_l32": MaskLanesLow, "localmem_mask_h32": MaskLanesHigh,
	"index_csize": IndexCSize, "index_hsize": IndexHSize, "index_cstride": IndexCStr, "index_hstride": IndexHStr,
}

// RoleOf returns the role of the field with a name, [NoRole] for other names.
func RoleOf(name string) Role {
	if r, ok := roleNames[name]; ok {
		return r
	}
	return NoRole
}

// roleOf finds the role of a field: names differ by a prefix, by a second name after a
// slash and by remarks in brackets.
func roleOf(e Engine, name string) (Role, bool) {
	name = unbreak(name)
	if r, ok := roleNames[name]; ok {
		return r, true
	}
	if e == TIU {
		name = strings.TrimPrefix(strings.TrimPrefix(name, "opt_"), "short_")
	} else {
		name, _, _ = strings.Cut(name, "/")
		name, _, _ = strings.Cut(name, "(")
		name, _, _ = strings.Cut(name, "（")
	}
	r, ok := roleNames[name]
	return r, ok
}

// unbreak puts back the blanks of a name.
func unbreak(name string) string { return strings.ReplaceAll(name, "~", " ") }
