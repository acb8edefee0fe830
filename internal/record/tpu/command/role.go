package command

import "strings"

// Role is the meaning of a field that layouts have under different names.
type Role uint8

// Roles of the fields of tensor commands and copies.
//
//nolint:revive // each row lists four roles
const (
	CmdShort, CmdID, CmdDep, TaskType Role = 4 * iota, 4*iota + 1, 4*iota + 2, 4*iota + 3
	TaskSub, OpdNum, Imm, Index
	Res0N, Res0C, Res0H, Res0W
	Opd0N, Opd0C, Opd0H, Opd0W
	Opd1N, Opd1C, Opd1H, Opd1W
	Res0NStr, Res0CStr, Res0HStr, Res0WStr
	Opd0NStr, Opd0CStr, Opd0HStr, Opd0WStr
	Opd1NStr, Opd1CStr, Opd1HStr, Opd1WStr
	Opd2NStr, Opd2CStr, Opd2HStr, Opd2WStr
	Opd0Addr, Opd1Addr, Opd2Addr, Opd3Addr
	Opd0Prec, Opd1Prec, Opd2Prec, Res0Prec
	Opd0Const, Opd1Const, Opd2Const, Opd3Const
	Opd0Sign, Opd1Sign, Opd2Sign, Res0Addr
	ShortOpd0, ShortOpd1, ShortOpd2, ShortRes0
	LeftTran, ResAdd, KernelRotate, Res1Addr
	Opd0XIns, Opd0YIns, Opd1XIns, Opd1YIns
	UpPad, DownPad, LeftPad, RightPad
	StrideX, StrideY, StrideEnable, NCHWCopy
	SrcNSize, SrcCSize, SrcHSize, SrcWSize
	DstNSize, DstCSize, DstHSize, DstWSize
	SrcNStr, SrcCStr, SrcHStr, SrcWStr
	DstNStr, DstCStr, DstHStr, DstWStr
	SrcLow, SrcHigh, DstLow, DstHigh
	MaskLow, MaskHigh, IndexLow, IndexHigh
	SrcFormat, DstFormat, MaskFormat, IndexFormat
	FillConst, Constant, ConstantHigh, CommonMode
	CopyDirection, DecompressOn, MaskLanesLow, MaskLanesHigh
	IndexCSize, IndexHSize, IndexCStr, IndexHStr

	NoRole = iota * 4 // a role without a field
)

// roleNames are the roles by the names of fields. Some layouts call the low 32 bits of an address
// h32 and the high ones l8.
var roleNames = func() map[string]Role {
	roles := map[string]Role{}
	// The names of the roles in the order of the constants. A comma separates names of one role.
	for i, names := range strings.Fields(`
	cmd_short cmd_id,cmd_id_tpu cmd_id_dep,cmd_id_gdma,eng0_sync_id tsk_typ,cmd_type
	tsk_eu_typ,cmd_special_function,special_func,cmd_special_function(mask_mem) tsk_opd_num imm index
	res0_n res0_c res0_h res0_w
	opd0_n opd0_c opd0_h opd0_w
	opd1_n opd1_c opd1_h opd1_w
	res0_n_str res0_c_str res0_h_str res0_w_str
	opd0_n_str opd0_c_str opd0_h_str opd0_w_str
	opd1_n_str opd1_c_str opd1_h_str opd1_w_str
	opd2_n_str opd2_c_str opd2_h_str opd2_w_str
	opd0_addr opd1_addr opd2_addr opd3_addr
	opd0_prec opd1_prec opd2_prec res0_prec
	opd0_const opd1_const opd2_const opd3_const
	opd0_sign opd1_sign opd2_sign res0_addr
	opd0_str opd1_str opd2_str res0_str
	left_tran res_add kernel_rotate res1_addr
	opd0_x_ins0 opd0_y_ins0 opd1_x_ins0 opd1_y_ins0
	opd0_up_pad opd0_dn_pad opd0_lf_pad opd0_rt_pad
	res_op_x_str res_op_y_str stride_enable nchw_copy,chw_copy
	src_nsize src_csize src_hsize src_wsize
	dst_nsize dst_csize dst_hsize dst_wsize
	src_nstride src_cstride src_hstride src_wstride
	dst_nstride dst_cstride dst_hstride dst_wstride
	src_start_addr_l32,src_start_addr_h32 src_start_addr_h8,src_start_addr_l8,src_start_addr_h13 dst_start_addr_l32,dst_start_addr_h32,racu_start_addr_l32 dst_start_addr_h8,dst_start_addr_l8,dst_start_addr_h13,racu_start_addr_h8,racu_start_addr_h13
	mask_start_addr_l32 mask_start_addr_h8 index_start_addr_l32 index_start_addr_h8,index_start_addr_h13
	src_data_format dst_data_format mask_data_format index_data_format
	fill_constant_en constant_value,constant_value_l32 constant_value_h32 common_mode
	direction decompress_enable localmem_mask_l32 localmem_mask_h32
	index_csize index_hsize index_cstride index_hstride`) {
		for name := range strings.SplitSeq(names, ",") {
			roles[name] = Role(i)
		}
	}
	return roles
}()

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
