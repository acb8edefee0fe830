package tflite

// kind is the stored type of a field of an option table, and the Go type it becomes.
type kind uint8

const (
	kInt32      kind = iota // int64
	kInt64                  // int64
	kFloat                  // float32
	kBool                   // bool
	kEnum                   // byte, string
	kEnum32                 // 32 bits, string
	kString                 // string
	kBytes                  // []byte
	kInts                   // 32-bit vector, []int64
	kInt64s                 // 64-bit vector, []int64
	kFloats                 // []float32
	kBools                  // byte vector, []int64
	kEnums                  // 32-bit vector, []string
	kGraph                  // int32, graph.GraphRef
	kGraphs                 // 32-bit vector, []graph.GraphRef
	kDeprecated             // occupies a slot
)

// field is one field of an option table; its slot is its position.
type field struct {
	name string
	kind kind
	enum enum
	def  int64
}

// options describes an option table of the schema.
type options struct {
	name   string
	fields []field
	ops    []string // operators that use it
}

func i32(name string) field            { return field{name: name, kind: kInt32} }
func i64(name string) field            { return field{name: name, kind: kInt64} }
func f32(name string) field            { return field{name: name, kind: kFloat} }
func boolean(name string) field        { return field{name: name, kind: kBool} }
func i64s(name string) field           { return field{name: name, kind: kInt64s} }
func ints(name string) field           { return field{name: name, kind: kInts} }
func subgraph(name string) field       { return field{name: name, kind: kGraph} }
func enumField(n string, e enum) field { return field{name: n, kind: kEnum, enum: e} }
func typed(name string) field          { return enumField(name, types) }

// or sets a default other than zero.
func (f field) or(def int64) field { f.def = def; return f }

var (
	fusedField  = enumField("fused_activation_function", activation)
	padField    = enumField("padding", padding)
	asymmetric  = boolean("asymmetric_quantize_inputs")
	biasType    = typed("quantized_bias_type")
	potScale    = boolean("pot_scale_int16").or(1)
	widthField  = i32("stride_w")
	heightField = i32("stride_h")
)

func table(name string, ops []string, fields ...field) options {
	return options{name: name, ops: ops, fields: fields}
}

func on(ops ...string) []string { return ops }

// builtinOptions lists the union BuiltinOptions by number, from 1.
var builtinOptions = []options{
	table("Conv2DOptions", on("CONV_2D"), padField, widthField, heightField, fusedField,
		i32("dilation_w_factor").or(1), i32("dilation_h_factor").or(1), biasType),
	table("DepthwiseConv2DOptions", on("DEPTHWISE_CONV_2D"), padField, widthField, heightField, i32("depth_multiplier"), fusedField,
		i32("dilation_w_factor").or(1), i32("dilation_h_factor").or(1)),
	table("ConcatEmbeddingsOptions", on("CONCAT_EMBEDDINGS"), i32("num_channels"), ints("num_columns_per_channel"), ints("embedding_dim_per_channel")),
	table("LSHProjectionOptions", on("LSH_PROJECTION"), enumField("type", lshProjection)),
	table("Pool2DOptions", on("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), padField, widthField, heightField,
		i32("filter_width"), i32("filter_height"), fusedField),
	table("SVDFOptions", on("SVDF"), i32("rank"), fusedField, asymmetric),
	table("RNNOptions", on("RNN"), fusedField, asymmetric),
	table("FullyConnectedOptions", on("FULLY_CONNECTED"), fusedField, enumField("weights_format", weightsFormat), boolean("keep_num_dims"), asymmetric, biasType),
	table("SoftmaxOptions", on("SOFTMAX"), f32("beta")),
	table("ConcatenationOptions", on("CONCATENATION"), i32("axis"), fusedField),
	table("AddOptions", on("ADD"), fusedField, potScale),
	table("L2NormOptions", on("L2_NORMALIZATION"), fusedField),
	table("LocalResponseNormalizationOptions", on("LOCAL_RESPONSE_NORMALIZATION"), i32("radius"), f32("bias"), f32("alpha"), f32("beta")),
	table("LSTMOptions", on("LSTM"), fusedField, f32("cell_clip"), f32("proj_clip"), enumField("kernel_type", lstmKernel), asymmetric),
	table("ResizeBilinearOptions", on("RESIZE_BILINEAR"), field{name: "new_height", kind: kDeprecated}, field{name: "new_width", kind: kDeprecated},
		boolean("align_corners"), boolean("half_pixel_centers")),
	table("CallOptions", on("CALL"), subgraph("subgraph")),
	table("ReshapeOptions", on("RESHAPE"), ints("new_shape")),
	table("SkipGramOptions", on("SKIP_GRAM"), i32("ngram_size"), i32("max_skip_size"), boolean("include_all_ngrams")),
	table("SpaceToDepthOptions", on("SPACE_TO_DEPTH"), i32("block_size")),
	table("EmbeddingLookupSparseOptions", on("EMBEDDING_LOOKUP_SPARSE"), enumField("combiner", combiner)),
	table("MulOptions", on("MUL"), fusedField),
	table("PadOptions", on("PAD")),
	table("GatherOptions", on("GATHER"), i32("axis"), i32("batch_dims")),
	table("BatchToSpaceNDOptions", on("BATCH_TO_SPACE_ND")),
	table("SpaceToBatchNDOptions", on("SPACE_TO_BATCH_ND")),
	table("TransposeOptions", on("TRANSPOSE")),
	table("ReducerOptions", on("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"), boolean("keep_dims")),
	table("SubOptions", on("SUB"), fusedField, potScale),
	table("DivOptions", on("DIV"), fusedField),
	table("SqueezeOptions", on("SQUEEZE"), ints("squeeze_dims")),
	table("SequenceRNNOptions", on("UNIDIRECTIONAL_SEQUENCE_RNN"), boolean("time_major"), fusedField, asymmetric),
	table("StridedSliceOptions", on("STRIDED_SLICE"), i32("begin_mask"), i32("end_mask"), i32("ellipsis_mask"), i32("new_axis_mask"),
		i32("shrink_axis_mask"), boolean("offset")),
	table("ExpOptions", on("EXP")),
	table("TopKV2Options", on("TOPK_V2")),
	table("SplitOptions", on("SPLIT"), i32("num_splits")),
	table("LogSoftmaxOptions", on("LOG_SOFTMAX")),
	table("CastOptions", on("CAST"), typed("in_data_type"), typed("out_data_type")),
	table("DequantizeOptions", on("DEQUANTIZE")),
	table("MaximumMinimumOptions", on("MAXIMUM", "MINIMUM")),
	table("ArgMaxOptions", on("ARG_MAX"), typed("output_type")),
	table("LessOptions", on("LESS")),
	table("NegOptions", on("NEG")),
	table("PadV2Options", on("PADV2")),
	table("GreaterOptions", on("GREATER")),
	table("GreaterEqualOptions", on("GREATER_EQUAL")),
	table("LessEqualOptions", on("LESS_EQUAL")),
	table("SelectOptions", on("SELECT")),
	table("SliceOptions", on("SLICE")),
	table("TransposeConvOptions", on("TRANSPOSE_CONV"), padField, widthField, heightField, fusedField, biasType),
	table("SparseToDenseOptions", on("SPARSE_TO_DENSE"), boolean("validate_indices")),
	table("TileOptions", on("TILE")),
	table("ExpandDimsOptions", on("EXPAND_DIMS")),
	table("EqualOptions", on("EQUAL")),
	table("NotEqualOptions", on("NOT_EQUAL")),
	table("ShapeOptions", on("SHAPE"), typed("out_type")),
	table("PowOptions", on("POW")),
	table("ArgMinOptions", on("ARG_MIN"), typed("output_type")),
	table("FakeQuantOptions", on("FAKE_QUANT"), f32("min"), f32("max"), i32("num_bits"), boolean("narrow_range")),
	table("PackOptions", on("PACK"), i32("values_count"), i32("axis")),
	table("LogicalOrOptions", on("LOGICAL_OR")),
	table("OneHotOptions", on("ONE_HOT"), i32("axis")),
	table("LogicalAndOptions", on("LOGICAL_AND")),
	table("LogicalNotOptions", on("LOGICAL_NOT")),
	table("UnpackOptions", on("UNPACK"), i32("num"), i32("axis")),
	table("FloorDivOptions", on("FLOOR_DIV")),
	table("SquareOptions", on("SQUARE")),
	table("ZerosLikeOptions", on("ZEROS_LIKE")),
	table("FillOptions", on("FILL")),
	table("BidirectionalSequenceLSTMOptions", on("BIDIRECTIONAL_SEQUENCE_LSTM"), fusedField, f32("cell_clip"), f32("proj_clip"),
		boolean("merge_outputs"), boolean("time_major").or(1), asymmetric),
	table("BidirectionalSequenceRNNOptions", on("BIDIRECTIONAL_SEQUENCE_RNN"), boolean("time_major"), fusedField, boolean("merge_outputs"), asymmetric),
	table("UnidirectionalSequenceLSTMOptions", on("UNIDIRECTIONAL_SEQUENCE_LSTM"), fusedField, f32("cell_clip"), f32("proj_clip"),
		boolean("time_major"), asymmetric, boolean("diagonal_recurrent_tensors")),
	table("FloorModOptions", on("FLOOR_MOD")),
	table("RangeOptions", on("RANGE")),
	table("ResizeNearestNeighborOptions", on("RESIZE_NEAREST_NEIGHBOR"), boolean("align_corners"), boolean("half_pixel_centers")),
	table("LeakyReluOptions", on("LEAKY_RELU"), f32("alpha")),
	table("SquaredDifferenceOptions", on("SQUARED_DIFFERENCE")),
	table("MirrorPadOptions", on("MIRROR_PAD"), enumField("mode", mirrorPad)),
	table("AbsOptions", on("ABS")),
	table("SplitVOptions", on("SPLIT_V"), i32("num_splits")),
	table("UniqueOptions", on("UNIQUE"), typed("idx_out_type").or(2)),
	table("ReverseV2Options", on("REVERSE_V2")),
	table("AddNOptions", on("ADD_N")),
	table("GatherNdOptions", on("GATHER_ND")),
	table("CosOptions", on("COS")),
	table("WhereOptions", on("WHERE")),
	table("RankOptions", on("RANK")),
	table("ReverseSequenceOptions", on("REVERSE_SEQUENCE"), i32("seq_dim"), i32("batch_dim")),
	table("MatrixDiagOptions", on("MATRIX_DIAG")),
	table("QuantizeOptions", on("QUANTIZE")),
	table("MatrixSetDiagOptions", on("MATRIX_SET_DIAG")),
	table("HardSwishOptions", on("HARD_SWISH")),
	table("IfOptions", on("IF"), subgraph("then_subgraph_index"), subgraph("else_subgraph_index")),
	table("WhileOptions", on("WHILE"), subgraph("cond_subgraph_index"), subgraph("body_subgraph_index")),
	table("DepthToSpaceOptions", on("DEPTH_TO_SPACE"), i32("block_size")),
	table("NonMaxSuppressionV4Options", on("NON_MAX_SUPPRESSION_V4")),
	table("NonMaxSuppressionV5Options", on("NON_MAX_SUPPRESSION_V5")),
	table("ScatterNdOptions", on("SCATTER_ND")),
	table("SelectV2Options", on("SELECT_V2")),
	table("DensifyOptions", on("DENSIFY")),
	table("SegmentSumOptions", on("SEGMENT_SUM")),
	table("BatchMatMulOptions", on("BATCH_MATMUL"), boolean("adj_x"), boolean("adj_y"), asymmetric),
	table("CumsumOptions", on("CUMSUM"), boolean("exclusive"), boolean("reverse")),
	table("CallOnceOptions", on("CALL_ONCE"), subgraph("init_subgraph_index")),
	table("BroadcastToOptions", on("BROADCAST_TO")),
	table("Rfft2dOptions", on("RFFT2D")),
	table("Conv3DOptions", on("CONV_3D", "CONV_3D_TRANSPOSE"), padField, i32("stride_d"), widthField, heightField, fusedField,
		i32("dilation_d_factor").or(1), i32("dilation_w_factor").or(1), i32("dilation_h_factor").or(1)),
	table("HashtableOptions", on("HASHTABLE"), i32("table_id"), typed("key_dtype"), typed("value_dtype")),
	table("HashtableFindOptions", on("HASHTABLE_FIND")),
	table("HashtableImportOptions", on("HASHTABLE_IMPORT")),
	table("HashtableSizeOptions", on("HASHTABLE_SIZE")),
	table("VarHandleOptions", on("VAR_HANDLE"), field{name: "container", kind: kString}, field{name: "shared_name", kind: kString}),
	table("ReadVariableOptions", on("READ_VARIABLE")),
	table("AssignVariableOptions", on("ASSIGN_VARIABLE")),
	table("RandomOptions", on("RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "MULTINOMIAL"), i64("seed"), i64("seed2")),
	table("BucketizeOptions", on("BUCKETIZE"), field{name: "boundaries", kind: kFloats}),
	table("GeluOptions", on("GELU"), boolean("approximate")),
	table("DynamicUpdateSliceOptions", on("DYNAMIC_UPDATE_SLICE")),
	table("UnsortedSegmentProdOptions", on("UNSORTED_SEGMENT_PROD")),
	table("UnsortedSegmentMaxOptions", on("UNSORTED_SEGMENT_MAX")),
	table("UnsortedSegmentMinOptions", on("UNSORTED_SEGMENT_MIN")),
	table("UnsortedSegmentSumOptions", on("UNSORTED_SEGMENT_SUM")),
	table("ATan2Options", on("ATAN2")),
	table("SignOptions", on("SIGN")),
	table("BitcastOptions", on("BITCAST")),
	table("BitwiseXorOptions", on("BITWISE_XOR")),
	table("RightShiftOptions", on("RIGHT_SHIFT")),
}

// builtinOptions2 lists the union BuiltinOptions2 by number, from 1.
var builtinOptions2 = []options{
	table("StablehloConcatenateOptions", on("STABLEHLO_CONCATENATE"), i64("dimension")),
	table("StablehloBroadcastInDimOptions", on("STABLEHLO_BROADCAST_IN_DIM"), i64s("broadcast_dimensions")),
	table("StablehloSliceOptions", on("STABLEHLO_SLICE"), i64s("start_indices"), i64s("limit_indices"), i64s("strides")),
	table("StablehloConvolutionOptions", on("STABLEHLO_CONVOLUTION"), i64s("window_strides"), i64s("padding"), i64s("lhs_dilation"), i64s("rhs_dilation"),
		field{name: "window_reversal", kind: kBools}, i64("input_batch_dimension"), i64("input_feature_dimension"), i64s("input_spatial_dimensions"),
		i64("kernel_input_feature_dimension"), i64("kernel_output_feature_dimension"), i64s("kernel_spatial_dimensions"), i64("output_batch_dimension"),
		i64("output_feature_dimension"), i64s("output_spatial_dimensions"), i64("feature_group_count"), i64("batch_group_count"),
		field{name: "precision_config", kind: kEnums, enum: precision}),
	table("StablehloCustomCallOptions", on("STABLEHLO_CUSTOM_CALL"), field{name: "call_target_name", kind: kString}, boolean("has_side_effect"),
		field{name: "backend_config", kind: kString}, i32("api_version"), field{name: "called_computations", kind: kGraphs},
		field{name: "custom_attributes", kind: kBytes}),
	table("StablehloReduceOptions", on("STABLEHLO_REDUCE"), i64s("dimensions"), subgraph("body_subgraph_index")),
	table("StablehloScatterOptions", on("STABLEHLO_SCATTER"), boolean("indices_are_sorted"), i64s("update_window_dims"), i64s("inserted_window_dims"),
		i64s("scatter_dims_to_operand_dims"), i64("index_vector_dim"), boolean("unique_indices"), subgraph("update_computation_subgraph_index")),
	table("StablehloCompareOptions", on("STABLEHLO_COMPARE"), field{name: "comparison_direction", kind: kEnum32, enum: direction},
		field{name: "compare_type", kind: kEnum32, enum: compareType}),
	table("StablehloDynamicSliceOptions", on("STABLEHLO_DYNAMIC_SLICE"), i64s("slice_sizes")),
	table("StablehloPadOptions", on("STABLEHLO_PAD"), i64s("edge_padding_low"), i64s("edge_padding_high"), i64s("interior_padding")),
	table("StablehloIotaOptions", on("STABLEHLO_IOTA"), i64("iota_dimension")),
	table("StablehloDotGeneralOptions", on("STABLEHLO_DOT_GENERAL"), i64s("lhs_batching_dimensions"), i64s("rhs_batching_dimensions"),
		i64s("lhs_contracting_dimensions"), i64s("rhs_contracting_dimensions"), field{name: "precision_config", kind: kEnums, enum: precision}),
	table("StablehloReduceWindowOptions", on("STABLEHLO_REDUCE_WINDOW"), i64s("window_dimensions"), i64s("window_strides"), i64s("base_dilations"),
		i64s("window_dilations"), i64s("padding"), subgraph("body_subgraph_index")),
	table("StablehloSortOptions", on("STABLEHLO_SORT"), i64("dimension"), boolean("is_stable"), subgraph("comparator_subgraph_index")),
	table("StablehloWhileOptions", on("STABLEHLO_WHILE"), subgraph("cond_subgraph_index"), subgraph("body_subgraph_index")),
	table("StablehloGatherOptions", on("STABLEHLO_GATHER"), i64s("offset_dims"), i64s("collapsed_slice_dims"), i64s("start_index_map"),
		i64("index_vector_dim"), i64s("slice_sizes"), boolean("indices_are_sorted")),
	table("StablehloTransposeOptions", on("STABLEHLO_TRANSPOSE"), i64s("permutation")),
	table("DilateOptions", on("DILATE")),
	table("StablehloRngBitGeneratorOptions", on("STABLEHLO_RNG_BIT_GENERATOR"), enumField("algorithm", rngAlgorithm)),
	table("ReduceWindowOptions", on("REDUCE_WINDOW"), field{name: "reduce_function", kind: kEnum32, enum: reduceFunction}),
	table("StableHLOCompositeOptions", on("STABLEHLO_COMPOSITE"), field{name: "name", kind: kString}, subgraph("decomposition_subgraph_index"),
		field{name: "composite_attributes", kind: kBytes}, enumField("composite_attributes_format", customFormat), i32("version")),
	table("StablehloShiftLeftOptions", on("STABLEHLO_SHIFT_LEFT")),
	table("StablehloCaseOptions", on("STABLEHLO_CASE"), field{name: "branch_subgraph_indices", kind: kGraphs}),
}

// place identifies the union and number of an operator's options.
type place struct {
	second bool // BuiltinOptions2
	number int  // from 1
	*options
}

var optionsOf = func() map[string]place {
	m := map[string]place{}
	for u, list := range [][]options{builtinOptions, builtinOptions2} {
		for i := range list {
			for _, name := range list[i].ops {
				m[name] = place{second: u == 1, number: i + 1, options: &list[i]}
			}
		}
	}
	return m
}()
