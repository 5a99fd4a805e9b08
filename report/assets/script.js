(function(){
  "use strict";
  document.documentElement.classList.add("js");

  // Tables: a click on a heading sorts by it, another one turns it round.
  document.querySelectorAll("table.sortable").forEach(function(table){
    var heads=Array.prototype.slice.call(table.tHead.rows[0].cells), body=table.tBodies[0];
    heads.forEach(function(th,column){
      var button=document.createElement("button");
      button.type="button";
      while(th.firstChild)button.appendChild(th.firstChild);
      th.appendChild(button);
      button.addEventListener("click",function(){
        var number=th.classList.contains("num");
        var down=th.getAttribute("aria-sort")==="ascending"||(number&&!th.hasAttribute("aria-sort"));
        heads.forEach(function(h){h.removeAttribute("aria-sort")});
        th.setAttribute("aria-sort",down?"descending":"ascending");
        var rows=Array.prototype.slice.call(body.rows);
        var key=function(row){return row.cells[column].getAttribute("data-sort")||""};
        rows.sort(function(a,b){
          var x=key(a),y=key(b),d=number?(parseFloat(x)||0)-(parseFloat(y)||0):x.localeCompare(y,undefined,{numeric:true});
          return down?-d:d;
        });
        rows.forEach(function(row){body.appendChild(row)});
      });
    });
  });

  // Curves: the pointer or the slider deletes patches of the pictures beside them.
  function values(line,box){
    return line.getAttribute("points").trim().split(/\s+/).map(function(p){
      return box.y0+(box.bottom-parseFloat(p.split(",")[1]))/(box.bottom-box.top)*(box.y1-box.y0);
    });
  }
  function fixed(v){return v.toFixed(2)}
  document.querySelectorAll(".result").forEach(function(result){
    var plot=result.querySelector("svg.plot[data-steps]");
    if(!plot)return;
    var d=plot.dataset, steps=+d.steps;
    var box={left:+d.left,right:+d.right,top:+d.top,bottom:+d.bottom,y0:+d.ymin,y1:+d.ymax};
    var le=values(plot.querySelector(".le"),box), mo=values(plot.querySelector(".mo"),box), n=le.length-1;
    var slider=result.querySelector(".scrub input"), out=result.querySelector(".scrub output");
    var order=(result.dataset.order||"").split(",").filter(Boolean).map(Number);
    var edge=+result.dataset.edge, w=+result.dataset.w, h=+result.dataset.h;
    var leClip=result.querySelector("path.scrub-le"), moClip=result.querySelector("path.scrub-mo");
    var cursor=plot.querySelector(".hover");
    var idle=out.textContent;
    function patches(list){
      var pw=Math.floor(w/edge), ph=Math.floor(h/edge);
      return list.map(function(f){
        var r=Math.floor(f/edge), c=f%edge, x=c*pw, y=r*ph;
        return "M"+x+" "+y+"H"+(c===edge-1?w:x+pw)+"V"+(r===edge-1?h:y+ph)+"H"+x+"Z";
      }).join("");
    }
    function show(k){
      var j=Math.round(k/steps*n), x=box.left+k/steps*(box.right-box.left);
      cursor.removeAttribute("hidden");
      cursor.style.display="";
      var line=cursor.querySelector("line");
      line.setAttribute("x1",x);line.setAttribute("x2",x);
      [["cle",le],["cmo",mo]].forEach(function(c){
        var dot=cursor.querySelector("circle."+c[0]);
        dot.setAttribute("cx",x);
        dot.setAttribute("cy",box.bottom-(c[1][j]-box.y0)/(box.y1-box.y0)*(box.bottom-box.top));
      });
      out.textContent="";
      out.append(k+" of "+steps+" deleted: ");
      [["le-text",le],["mo-text",mo]].forEach(function(c,i){
        var b=document.createElement("b");b.className=c[0];b.textContent=fixed(c[1][j]);
        if(i)out.append(" · ");
        out.append(b);
      });
      slider.value=k;
      if(order.length&&leClip){
        leClip.setAttribute("d",patches(order.slice(0,k))||"M0 0");
        moClip.setAttribute("d",patches(order.slice(order.length-k))||"M0 0");
        result.classList.add("scrubbing");
      }
    }
    function rest(){
      cursor.style.display="none";
      out.textContent=idle;
      slider.value=0;
      result.classList.remove("scrubbing");
    }
    plot.addEventListener("pointermove",function(e){
      var r=plot.getBoundingClientRect(), x=(e.clientX-r.left)/r.width*(+d.width);
      show(Math.min(steps,Math.max(0,Math.round((x-box.left)/(box.right-box.left)*steps))));
    });
    plot.addEventListener("pointerleave",function(e){if(e.pointerType==="mouse")rest()});
    slider.addEventListener("input",function(){if(+slider.value===0)rest();else show(+slider.value)});
  });
})();
