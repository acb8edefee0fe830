package simd

var groupKernelsVNNI = [groupKinds][]func(t *GroupTile){
	{groupOne1VNNI, groupOne2VNNI, groupOne3VNNI, groupOne4VNNI, groupOne5VNNI, groupOne6VNNI, groupOne7VNNI, groupOne8VNNI, groupOne9VNNI, groupOne10VNNI, groupOne11VNNI, groupOne12VNNI},
	{groupTwo1VNNI, groupTwo2VNNI, groupTwo3VNNI, groupTwo4VNNI, groupTwo5VNNI, groupTwo6VNNI, groupTwo7VNNI, groupTwo8VNNI, groupTwo9VNNI, groupTwo10VNNI, groupTwo11VNNI, groupTwo12VNNI},
	{groupFours1VNNI, groupFours2VNNI, groupFours3VNNI, groupFours4VNNI, groupFours5VNNI, groupFours6VNNI, groupFours7VNNI, groupFours8VNNI, groupFours9VNNI, groupFours10VNNI, groupFours11VNNI, groupFours12VNNI},
	{groupEights1VNNI, groupEights2VNNI, groupEights3VNNI, groupEights4VNNI, groupEights5VNNI, groupEights6VNNI, groupEights7VNNI, groupEights8VNNI, groupEights9VNNI, groupEights10VNNI, groupEights11VNNI, groupEights12VNNI},
}
