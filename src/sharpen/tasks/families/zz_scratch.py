"""scratch"""
from sharpen.tasks.families import count_letter as c
from sharpen.tasks.textual import item
class Spaced(c.CountLetter):
    def items(self):
        out=[]
        for i in super().items():
            w=i.text.split()
            out.append(item(f"{w[2]} in {' '.join(w[-1].strip('?'))}", i.reference, i.type))
        return out
class Small(c.CountLetter):
    def items(self):
        from sharpen.core.rng import Stream
        out={}
        s=Stream(0,"x")
        while len(out)<300:
            n=1+s.below(4); L="abcde"
            t=s.choice(L); rest=[x for x in L if x!=t]
            seq=s.shuffled([t]*n+[s.choice(rest) for _ in range(2+s.below(2))])
            q=f"{t} in {' '.join(seq)}"
            out[q]=item(q,str(n),str(n))
        return list(out.values())
