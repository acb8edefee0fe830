package main

func floats(a *asm) {}
