package simd

var groupKernelsVNNI = [groupKinds][]func(t *GroupTile){
	{groupOne1VNNI, groupOne2VNNI, groupOne3VNNI, groupOne4VNNI, groupOne5VNNI, groupOne6VNNI, groupOne7VNNI, groupOne8VNNI, groupOne9VNNI, groupOne10VNNI, groupOne11VNNI, groupOne12VNNI},
	{groupTwo1VNNI, groupTwo2VNNI, groupTwo3VNNI, groupTwo4VNNI, groupTwo5VNNI, groupTwo6VNNI, groupTwo7VNNI, groupTwo8VNNI, groupTwo9VNNI, groupTwo10VNNI, groupTwo11VNNI, groupTwo12VNNI},
	{groupFours1VNNI, groupFours2VNNI, groupFours3VNNI, groupFours4VNNI, groupFours5VNNI, groupFours6VNNI, groupFours7VNNI, groupFours8VNNI, groupFours9VNNI, groupFours10VNNI, groupFours11VNNI, groupFours12VNNI},
	{groupEights1VNNI, groupEights2VNNI, groupEights3VNNI, groupEights4VNNI, groupEights5VNNI, groupEights6VNNI, groupEights7VNNI, groupEights8VNNI, groupEights9VNNI, groupEights10VNNI, groupEights11VNNI, groupEights12VNNI},
}

var groupKernelsAVX2 = [groupKinds][]func(t *GroupTile){
	GroupOne:    {groupOne1AVX2, groupOne2AVX2, groupOne3AVX2, groupOne4AVX2},
	GroupSmall4: {groupFours1AVX2, groupFours2AVX2, groupFours3AVX2, groupFours4AVX2},
	GroupSmall8: {groupEights1AVX2, groupEights2AVX2},
}

var groupKernelsAVXVNNI = [groupKinds][]func(t *GroupTile){
	GroupOne:    {groupOne1AVXVNNI, groupOne2AVXVNNI, groupOne3AVXVNNI, groupOne4AVXVNNI, groupOne5AVXVNNI, groupOne6AVXVNNI},
	GroupSmall4: {groupFours1AVXVNNI, groupFours2AVXVNNI, groupFours3AVXVNNI, groupFours4AVXVNNI, groupFours5AVXVNNI, groupFours6AVXVNNI},
	GroupSmall8: {groupEights1AVXVNNI, groupEights2AVXVNNI, groupEights3AVXVNNI},
}
